import { markDetached, markUncertain } from "./actual.ts";
import { attachmentOf } from "./attachments.ts";
import { markVolume, pluginOf, type Context } from "./context.ts";
import { inSlices } from "./slices.ts";
import type { NodeState, Placement } from "./world.ts";

/**
 * Compares what we hold attached with what is really there, every `--attach-detach-reconcile-sync-period`. Watch
 * events say the same sooner; this is for what they missed. Only absence is proof: a server that cannot answer, or a
 * driver that says nothing, changes nothing.
 */
export async function runVerify(context: Context, signal: AbortSignal): Promise<void> {
  const { clock, options, world } = context;
  if (options.disableReconcileSync) return;
  for (;;) {
    await clock.sleep(options.reconcileSyncPeriodMs, signal);
    let verified = 0;
    for (const node of world.nodes.values()) {
      await verifyNode(context, node, signal);
      if (++verified % NODES_A_TURN === 0) await clock.sleep(0, signal);
    }
  }
}

/** Nearly all are answered by the cache: 25 nodes with 20 volumes each take about a millisecond. */
const NODES_A_TURN = 25;

/** Timed a node, as upstream: its bulk verification is an operation of its own, which belongs to no plugin. */
async function verifyNode(context: Context, node: NodeState, signal: AbortSignal): Promise<void> {
  const { clock, measure } = context;
  let [asked, unanswered] = [0, 0];
  const observe = measure.operation(OPERATION, { plugin: "<n/a>", migrated: false });
  await inSlices(clock, node.placements.values(), signal, (placement) => {
    if (placement.hold?.confirmed) asked++;
    if (isSaidAttached(context, placement)) return undefined;
    return verify(context, placement).then((answered) => {
      if (!answered) unanswered++;
    });
  });
  if (asked > 0) observe(unanswered === 0 ? "success" : "fail-unknown");
}

const OPERATION = "verify_volumes_are_attached_per_node";

/** Nearly all are, at the cost of a map lookup each. */
function isSaidAttached(context: Context, placement: Placement): boolean {
  return attachmentOf(context, placement)?.status?.attached === true;
}

/** False where nobody could tell. */
async function verify(context: Context, placement: Placement): Promise<boolean> {
  const { hold, node, volume } = placement;
  if (!isVerifiable(placement)) return true;
  const found = pluginOf(context, placement);
  const verdict = await found?.plugin.verify({ volume: volume.name, spec: hold?.spec, node: node.name });
  // Something may have happened while it was asked.
  if (verdict === "not-attached" && placement.hold === hold && isVerifiable(placement))
    attachmentLost(context, placement);
  return verdict !== "unknown";
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
