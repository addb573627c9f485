import { isObject } from "../../volumes/untrusted.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { AttachSteps } from "../plugin.ts";
import { persistent } from "./csi-device.ts";
import { CSI_CODES } from "../../csi/errors.ts";
import { messageOf } from "./csi-errors.ts";
import { attachmentNameOf, attachmentOf, refuseDetached, rulesFor, type CsiContext } from "./csi-lookups.ts";
import { csiVolumeOf } from "./csi-source.ts";

/** Asks the driver again how many volumes this node may have, and says so in its CSINode. */
export type RefreshAllocatable = (driver: string, signal: AbortSignal) => Promise<void>;

export function createCsiAttach(context: CsiContext, refresh: RefreshAllocatable): AttachSteps {
  return {
    async waitForAttach({ spec, signal }) {
      const volume = persistent(spec);
      refuseDetached(context, volume, await attachmentOf(context, volume, signal));
      return attachmentNameOf(context, volume);
    },
    limitReached: (spec, signal) => limitReached(context, spec, { refresh, signal }),
  };
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
