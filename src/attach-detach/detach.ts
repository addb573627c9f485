import type { OperationKey } from "../operations/key.ts";
import { isMigrated } from "../volumes/spec.ts";
import { markDetached, markUncertain } from "./actual.ts";
import { mark, operationKey, pluginOf, type Context } from "./context.ts";
import { AttachDetachError, detailOf } from "./errors.ts";
import { begin, calledOff } from "./operation.ts";
import { readNode } from "./live-node.ts";
import { isHealthy, isOutOfService, listsVolume, usesVolume } from "./node-view.ts";
import { wantedTwin } from "./foreign-events.ts";
import { rivalOf } from "./holders.ts";
import type { Force } from "./plan.ts";
import { tellNode } from "./telling.ts";
import type { Hold, Placement } from "./world.ts";

const NAME = "volume_detach";

/**
 * Takes a volume off a node. The node no longer lists it, and the server has said so; now the node is read once more from
 * the server, because it alone knows whether it began to use the volume before it saw that. Only then is the driver
 * asked.
 */
export function startDetach(
  context: Context,
  placement: Placement,
  { hold, force }: { readonly hold: Hold; readonly force: Force | undefined },
): void {
  const key = operationKey(placement);
  const found = pluginOf(context, placement);
  if (found === undefined) return;
  const { clock, operations, measure } = context;
  const observe = measure.operation(NAME, {
    plugin: found.plugin.metricName(hold.spec),
    migrated: hold.spec !== undefined && isMigrated(hold.spec),
  });

  begin(context, placement, { key, name: NAME }, async (busy) => {
    try {
      const go = await lookLive(context, placement, force, busy.abort.signal);
      if (go.kind === "not-now") {
        if (go.why === "in-use") markUncertain(context, placement, { spec: hold.spec, nowMs: clock.now() });
        operations.abandon(key, NAME);
        return;
      }
      if (go.force) recordForce(context, placement, go.force);
      await found.plugin.detach({
        volume: placement.volume.name,
        pluginVolume: found.pluginVolume,
        node: placement.node.name,
        signal: busy.abort.signal,
        onAccepted() {
          busy.withDriver = true;
          mark(context, placement);
        },
      });
      operations.finish(key, NAME);
      observe("success");
      measure.endPhase(placement, "detach");
      markDetached(context, placement);
    } catch (error) {
      fail(context, placement, { key, hold, error, observe, off: calledOff(busy, error) });
    }
  });
}

type Look =
  | { readonly kind: "go"; readonly force: Force | undefined }
  /** `in-use`: the node began to use it. `wanted`: a pod wants it again, or somebody else has attached it here. */
  | { readonly kind: "not-now"; readonly why: "in-use" | "wanted" };

/** What the node says now, from the server itself. Health and taint are read here too: the cache may be minutes old. */
async function lookLive(
  context: Context,
  placement: Placement,
  force: Force | undefined,
  signal: AbortSignal,
): Promise<Look> {
  const { volume, node } = placement;
  const live = await readNode(context, node.name, signal);
  if (placement.want && !rivalOf(placement)) return { kind: "not-now", why: "wanted" };
  if (wantedTwin(placement) || placement.foreign.length > 0) return { kind: "not-now", why: "wanted" };
  if (live === undefined) return { kind: "go", force: force?.reason === "timeout" ? force : undefined };
  const stillForced =
    force?.reason === "timeout" ? !isHealthy(live) : force !== undefined && isOutOfService(live);
  // Somebody else writes the list too. It is written again, but not in a tight loop with whoever that is.
  if (listsVolume(live, volume.name))
    throw new AttachDetachError("ListedAgain", `node ${node.name} lists it as attached again`);
  if (!usesVolume(live, volume.name)) return { kind: "go", force: undefined };
  return stillForced ? { kind: "go", force } : { kind: "not-now", why: "in-use" };
}

/** Only what really was forced is counted: the volume was in use, and the evidence held when it was read live. */
function recordForce(context: Context, placement: Placement, force: Force): void {
  const { log, measure } = context;
  const { volume, node } = placement;
  measure.forced(force.reason);
  const evidence =
    force.reason === "timeout"
      ? `nobody has wanted it for ${Math.round(force.unwantedMs / 1_000)} s and the node is not ready`
      : "the node carries the taint node.kubernetes.io/out-of-service";
  log.warn("detach forced", { volume: volume.name, node: node.name, reason: force.reason, evidence });
  tellNode(context, placement, {
    type: "Warning",
    reason: "ForcedDetach",
    message: `Volume ${volume.name} is detached although the node says it uses it: ${evidence}`,
  });
}

interface Failure {
  readonly key: OperationKey;
  readonly hold: Hold;
  readonly error: unknown;
  readonly observe: (status: "fail-unknown") => void;
  readonly off: boolean;
}

function fail(context: Context, placement: Placement, { key, hold, error, observe, off }: Failure): void {
  const { clock, log, operations } = context;
  const { volume, node } = placement;
  const code = error instanceof AttachDetachError ? error.code : undefined;
  if (code !== "Mismatch" && code !== "NotLeading" && code !== "ListedAgain")
    markUncertain(context, placement, { spec: hold.spec, nowMs: clock.now() });
  if (off || code === "NotLeading") {
    operations.abandon(key, NAME);
    return;
  }
  const { retryAtMs } = operations.fail(key, NAME, detailOf(error), clock.now());
  observe("fail-unknown");
  const retryInMs = retryAtMs - clock.now();
  log.warn("detach failed", { volume: volume.name, node: node.name, error: detailOf(error), retryInMs });
  tellNode(context, placement, {
    type: "Warning",
    reason: "DetachFailed",
    message: `DetachVolume.Detach failed for volume ${volume.name}: ${detailOf(error)}`,
  });
}
