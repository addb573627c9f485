import { markDetached, markUncertain } from "./actual.ts";
import { attachmentOf } from "./attachments.ts";
import { markVolume, pluginOf, type Context } from "./context.ts";
import { inSlices } from "./slices.ts";
import type { Placement } from "./world.ts";

/**
 * Compares what we hold attached with what is really there, every `--attach-detach-reconcile-sync-period`. Watch
 * events say the same sooner; this is for what they missed. Only absence is proof: a server that cannot answer, or a
 * driver that says nothing, changes nothing.
 */
export async function runVerify(context: Context, signal: AbortSignal): Promise<void> {
  const { clock, options } = context;
  if (options.disableReconcileSync) return;
  for (;;) {
    await clock.sleep(options.reconcileSyncPeriodMs, signal);
    await inSlices(clock, context.world.placements(), signal, (placement) =>
      isSaidAttached(context, placement) ? undefined : verify(context, placement),
    );
  }
}

/** Nearly all are, at the cost of a map lookup each. */
function isSaidAttached(context: Context, placement: Placement): boolean {
  return attachmentOf(context, placement)?.status?.attached === true;
}

async function verify(context: Context, placement: Placement): Promise<void> {
  const { hold, node, volume } = placement;
  if (!isVerifiable(placement)) return;
  const found = pluginOf(context, placement);
  const verdict = await found?.plugin.verify({ volume: volume.name, spec: hold?.spec, node: node.name });
  // Something may have happened while it was asked.
  if (verdict === "not-attached" && placement.hold === hold && isVerifiable(placement))
    attachmentLost(context, placement);
}

function isVerifiable({ hold, busy, node }: Placement): boolean {
  return hold?.confirmed === true && busy === undefined && node.managed;
}

/**
 * What was attached no longer is. With its VolumeAttachment gone it certainly is off the node; one that says "not
 * attached" may be on either side of a change, so the volume is uncertain and no other node gets it.
 */
export function attachmentLost(context: Context, placement: Placement): void {
  const { log, clock, nodeStatus } = context;
  const { volume, node, hold, want } = placement;
  log.warn("attachment lost", { volume: volume.name, node: node.name, wanted: want !== undefined });
  if (attachmentOf(context, placement))
    markUncertain(context, placement, { spec: hold?.spec, nowMs: clock.now() });
  else markDetached(context, placement);
  nodeStatus.add(node.name);
  markVolume(context, placement);
}
