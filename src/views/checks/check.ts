import { oneLine, idOf, nameOf, textAt } from "../fields.ts";
import type { Evidence, Finding, Reason } from "../reasons/reasons.ts";
import type { VolumeView } from "../volume-view.ts";

/** Looks at one volume of one pod for one kind of trouble; answers undefined where there is none. */
export type Check = (view: VolumeView) => Finding | undefined;

export function found(
  reason: Reason,
  view: VolumeView,
  { names = {}, ...known }: Omit<Finding, "reason" | "names"> & { readonly names?: Finding["names"] },
): Finding {
  return { reason, names: { ...namesOf(view), ...names }, ...known };
}

/** What the sentences of most reasons need. */
function namesOf(view: VolumeView): Record<string, string> {
  const [ns = "", claimName = ""] = view.claimId.split("/");
  return {
    pod: idOf(view.pod),
    podName: nameOf(view.pod),
    ns: textAt(view.pod, "metadata", "namespace") || ns,
    claim: view.claimId,
    claimName,
    volume: view.volumeName || view.pvName,
    pv: view.pvName,
    node: view.nodeName,
    driver: view.driver,
    attachment: nameOf(view.attachment),
  };
}

/** `field=value` of an object; a value that is not there is shown as such. */
export function seen(object: string, field: string, value: unknown): Evidence {
  return { object, field, value: shown(value) };
}

const VALUE_CHARS_MAX = 160;

function shown(value: unknown): string {
  if (value === undefined || value === "") return "<none>";
  return oneLine(typeof value === "string" ? value : JSON.stringify(value), VALUE_CHARS_MAX);
}
