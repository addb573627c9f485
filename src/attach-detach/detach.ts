import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import type { OperationKey } from "../operations/key.ts";
import { isMigrated } from "../volumes/spec.ts";
import { markDetached, markUncertain } from "./actual.ts";
import { attachmentOf, isOrphaned } from "./attachments.ts";
import { mark, operationKey, pluginOf, type Context } from "./context.ts";
import { AttachDetachError, detailOf, errorClass } from "./errors.ts";
import { begin, calledOff, operationFields } from "./operation.ts";
import { readNode } from "./live-node.ts";
import { isHealthy, isMounted, isOutOfService, listsVolume, usesVolume } from "./node-view.ts";
import { wantedTwin } from "./foreign-events.ts";
import { rivalOf } from "./holders.ts";
import { forceReason, hasCaughtUp, mayForce, type Force } from "./plan.ts";
import { tellNode } from "./telling.ts";
import { useWords } from "./words.ts";
import type { Busy, Hold, Placement } from "./world.ts";

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
  const sinceMs = hold.unwantedSinceMs;
  const stillCounts = () =>
    hold.unwantedSinceMs === sinceMs && hasCaughtUp({ podsWatchedMs: context.caches.pods.watchedMs() });
  const observe = measure.operation(NAME, {
    plugin: found.plugin.metricName(hold.spec),
    migrated: hold.spec !== undefined && isMigrated(hold.spec),
  });

  begin(context, placement, { key, name: NAME }, async (busy) => {
    try {
      const go = await lookLive(context, placement, { force, stillCounts, signal: busy.abort.signal });
      if (go.kind === "not-now") {
        if (go.why === "in-use") markUncertain(context, placement, { spec: hold.spec, nowMs: clock.now() });
        operations.abandon(key, NAME);
        const fields = operationFields(context, placement, { busy });
        context.log.info("detach called off", { ...fields, why: NOT_NOW[go.why] });
        return;
      }
      if (go.force) recordForce(context, placement, go.force);
      await found.plugin.detach({
        volume: placement.volume.name,
        pluginVolume: found.pluginVolume,
        node: placement.node.name,
        signal: busy.abort.signal,
        onlyVersion: go.onlyVersion,
        onAccepted() {
          busy.withDriver = true;
          mark(context, placement);
        },
      });
      operations.finish(key, NAME);
      observe("success");
      measure.endPhase(placement, "detach");
      context.log.info("detached", {
        ...operationFields(context, placement, { busy }),
        ...(go.force && { forced: forceReason(go.force) }),
      });
      markDetached(context, placement);
    } catch (error) {
      fail(context, placement, { key, hold, error, observe, busy });
    }
  });
}

type Look =
  | { readonly kind: "go"; readonly force: Force | undefined; readonly onlyVersion?: string }
  /**
   * `in-use`: the node began to use it, or may. `wanted`: a pod wants it again, or somebody else has attached it here.
   * `unseen`: a pod has used it in between, or may have.
   */
  | { readonly kind: "not-now"; readonly why: "in-use" | "wanted" | "unseen" };

interface Looking {
  readonly force: Force | undefined;
  /** Whether the time that the force rests on has not begun anew since it was planned, and pods are still watched. */
  readonly stillCounts: () => boolean;
  readonly signal: AbortSignal;
}

const NOT_NOW = {
  "in-use": "the node began to use the volume, or its Node object was replaced and has not said what it uses",
  wanted: "a pod on the node uses the volume again, or somebody else has attached it there",
  unseen: "a pod on the node may have used the volume meanwhile",
} as const;

/** What the node says now, from the server itself. Health and taint are read here too: the cache may be minutes old. */
async function lookLive(
  context: Context,
  placement: Placement,
  { force, stillCounts, signal }: Looking,
): Promise<Look> {
  const { volume, node } = placement;
  const live = await readNode(context, node.name, signal);
  const orphaned = isOrphaned(context, placement);
  if (placement.want && !rivalOf(placement) && !orphaned) return { kind: "not-now", why: "wanted" };
  if (wantedTwin(placement) || placement.foreign.length > 0) return { kind: "not-now", why: "wanted" };
  if (force?.expiredMs !== undefined && !stillCounts()) return { kind: "not-now", why: "unseen" };
  if (live === undefined)
    return force || !isMounted(placement) ? { kind: "go", force } : { kind: "not-now", why: "in-use" };
  // Somebody else writes the list too. It is written again, but not in a tight loop with whoever that is.
  if (listsVolume(live, volume.name))
    throw new AttachDetachError("ListedAgain", `node ${node.name} lists it as attached again`);
  // The Node just read may be another than the one the detach was planned for: then it is presumed in use.
  if (!usesVolume(live, volume.name) && !isMounted(placement)) return { kind: "go", force: undefined };
  if (orphaned)
    return { kind: "go", force: undefined, onlyVersion: await readUntouched(context, placement, signal) };
  return force && mayForce(force, live) ? { kind: "go", force } : { kind: "not-now", why: "in-use" };
}

/**
 * The version at which no attacher has begun with the VolumeAttachment: an attacher adds its finalizer before its first call, so
 * that to delete this very version takes no disk from the node, whatever the node says that it uses.
 */
async function readUntouched(context: Context, placement: Placement, signal: AbortSignal): Promise<string> {
  const { name = "", uid } = attachmentOf(context, placement)?.metadata ?? {};
  const { metadata, status } = await context.client.get(volumeAttachments, { name }, { signal });
  const { finalizers = [], resourceVersion = "" } = metadata;
  if (metadata.uid === uid && finalizers.length === 0 && status?.attached !== true) return resourceVersion;
  throw new AttachDetachError(
    "InUse",
    `VolumeAttachment ${name} names a PersistentVolume that is gone, and is not made anew for the pod: its attacher has begun with it, and node ${placement.node.name} may use the volume`,
  );
}

/** Only what really was forced is counted: the volume was in use, and the evidence held when it was read live. */
function recordForce(context: Context, placement: Placement, force: Force): void {
  const { log, measure } = context;
  const { volume, node } = placement;
  const reason = forceReason(force);
  measure.forced(reason);
  const evidence = evidenceOf(force, node);
  log.warn("detach forced", { volume: volume.name, node: node.name, reason, evidence });
  tellNode(context, placement, {
    type: "Warning",
    reason: "ForcedDetach",
    message: `Volume ${volume.name} is detached although ${useWords(placement)}: ${evidence}`,
  });
}

/** Everything that holds, in words: with the time over and the taint there, an operator should read both. */
function evidenceOf({ expiredMs }: Force, { exists, node }: Placement["node"]): string {
  const known = exists ? node : undefined;
  const unready = exists ? "the node is not ready" : "the node is gone";
  const evidence = [
    expiredMs === undefined || isHealthy(known)
      ? ""
      : `no pod on the node has used it for ${Math.round(expiredMs / 1_000)} s and ${unready}`,
    isOutOfService(known) ? "the node carries the taint node.kubernetes.io/out-of-service" : "",
  ].filter((text) => text !== "");
  return evidence.join("; ") || "the node was taken out of service and is gone";
}

interface Failure {
  readonly key: OperationKey;
  readonly hold: Hold;
  readonly error: unknown;
  readonly observe: (status: "fail-unknown") => void;
  readonly busy: Busy;
}

function fail(context: Context, placement: Placement, { key, hold, error, observe, busy }: Failure): void {
  const { clock, log, operations } = context;
  const { volume } = placement;
  const code = error instanceof AttachDetachError ? error.code : undefined;
  if (code !== "Mismatch" && code !== "NotLeading" && code !== "ListedAgain")
    markUncertain(context, placement, { spec: hold.spec, nowMs: clock.now() });
  const fields = operationFields(context, placement, { busy });
  if (calledOff(busy, error) || code === "NotLeading") {
    // While the lease is in doubt it would be planned again at once, and refused as often as it can be planned.
    if (code === "NotLeading") operations.fail(key, NAME, detailOf(error), clock.now());
    else operations.abandon(key, NAME);
    log.info("detach called off", { ...fields, why: detailOf(error) });
    return;
  }
  const { retryAtMs } = operations.fail(key, NAME, detailOf(error), clock.now());
  observe("fail-unknown");
  const retryInMs = retryAtMs - clock.now();
  log.warn("detach failed", { ...fields, class: errorClass(error), error: detailOf(error), retryInMs });
  tellNode(context, placement, {
    type: "Warning",
    reason: "DetachFailed",
    message: `DetachVolume.Detach failed for volume ${volume.name}: ${detailOf(error)}`,
  });
}
