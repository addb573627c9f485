import { isObject, text } from "../../volumes/untrusted.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { VolumeError } from "../errors.ts";
import type { AttachSteps } from "../plugin.ts";
import { persistent } from "./csi-device.ts";
import { CSI_CODES } from "../../csi/errors.ts";
import { messageOf, transient } from "./csi-errors.ts";
import { attachmentNameOf, attachmentOf, rulesFor, type CsiContext } from "./csi-lookups.ts";
import { csiVolumeOf } from "./csi-source.ts";

/** Asks the driver again how many volumes this node may have, and says so in its CSINode. */
export type RefreshAllocatable = (driver: string, signal: AbortSignal) => Promise<void>;

export function createCsiAttach(context: CsiContext, refresh: RefreshAllocatable): AttachSteps {
  return {
    async waitForAttach({ spec, signal }) {
      const volume = persistent(spec);
      const { metadata, status } = await attachmentOf(context, volume, signal);
      const name = attachmentNameOf(context, volume);
      if (metadata.deletionTimestamp) throw blockedBy(name, "volume attachment is being deleted");
      if (status?.attached === true) return name;
      const message = text(status?.attachError?.message);
      if (message !== "") throw blockedBy(name, message);
      throw blockedBy(name, `volume ${volume.handle} is not attached for volume attachment ${name}`);
    },
    limitReached: (spec, signal) => limitReached(context, spec, { refresh, signal }),
  };
}

function blockedBy(name: string, message: string): VolumeError {
  return transient(message, { blockedBy: [{ kind: "attachment", name }] });
}

/** Only for drivers that tell how the limit changes; whatever cannot be looked up counts as room enough. */
async function limitReached(
  context: CsiContext,
  spec: VolumeSpec,
  { refresh, signal }: { readonly refresh: RefreshAllocatable; readonly signal: AbortSignal },
): Promise<boolean> {
  const volume = csiVolumeOf(spec);
  if (volume?.kind !== "persistent") return false;
  try {
    if (rulesFor(context, volume.driver).allocatablePeriodMs === undefined) return false;
    const { status } = await attachmentOf(context, volume, signal);
    if (!isExhausted(status?.attachError)) return false;
  } catch {
    return false;
  }
  await refresh(volume.driver, signal).catch((error: unknown) =>
    context.log.warn("allocatable not refreshed", { driver: volume.driver, error: messageOf(error) }),
  );
  return true;
}

/** `errorCode` is younger than the types we compile against. */
function isExhausted(attachError: unknown): boolean {
  return (
    isObject(attachError) &&
    (attachError as { errorCode?: unknown }).errorCode === CSI_CODES.RESOURCE_EXHAUSTED
  );
}
