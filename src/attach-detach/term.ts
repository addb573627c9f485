import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { CSIDriver } from "../kube/api/csi-driver.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { Delta } from "../kube/informer/store.ts";
import type { ObjectKey } from "../kube/object.ts";
import { runWorkers } from "../kube/workqueue/controller.ts";
import { createWorkQueue } from "../kube/workqueue/work-queue.ts";
import { PendingOperations } from "../operations/pending.ts";
import type { NodeName } from "../volumes/names.ts";
import { createPluginRegistry } from "../volumes/registry.ts";
import { createAttachmentWatch } from "./attachment-watch.ts";
import { onAttachment, onVolumeAdded, onVolumeGone, retryWith } from "./attachments.ts";
import { POD_CLAIM_INDEX } from "./caches.ts";
import { beginAnewAfter, markStayed } from "./claimant.ts";
import { markUnsettled, markVolume, type Context } from "./context.ts";
import type { AttachDetachDeps } from "./controller.ts";
import { createCsiPlugin } from "./csi-plugin.ts";
import { removePod, setPod, type DesiredDeps } from "./desired.ts";
import { createDetachTimers } from "./detach-timers.ts";
import { createDoubts } from "./doubts.ts";
import { adoptUnread } from "./foreign-events.ts";
import { ForeignAttachments } from "./foreign.ts";
import { createMeasure } from "./measure.ts";
import { onNode } from "./nodes.ts";
import type { AttachDetachOptions } from "./options.ts";
import { startTiming } from "./phases.ts";
import { markAllUnsettled, takeStock } from "./recover.ts";
import { reconcilePlacement } from "./reconcile.ts";
import { questionWait } from "./reporting.ts";
import { runSilentNodes } from "./silent-nodes.ts";
import { runStatusWriter } from "./status-writer.ts";
import { followAll, runSweep } from "./sweep.ts";
import { Tally } from "./tally.ts";
import { runVerify } from "./verify.ts";
import { World, type Placement, type PlacementKey } from "./world.ts";

/** One term of leading: everything it knows is made here and let go at its end. */
export interface Term {
  readonly context: Context;
  run(signal: AbortSignal): Promise<void>;
  /** What decides which volumes are attached has changed: all pods are looked at again. */
  followAll(): void;
}

/** Back-off of section 15.3, for status writes as for operations. */
const BACKOFF = { initialMs: 500, maxMs: 122_000 };
/** Of upstream's claim queue. */
const CLAIM_BACKOFF = { initialMs: 5, maxMs: 1_000_000 };

export function createTerm(deps: AttachDetachDeps, options: AttachDetachOptions): Term {
  let active = false;
  const context = createContext(deps, options, () => active);
  const desired = createDesired(context);
  const timers = createDetachTimers(context, { namespace: options.timersNamespace });

  async function run(signal: AbortSignal): Promise<void> {
    const leave: (() => void)[] = [];
    try {
      await deps.caches.whenSynced(signal);
      leave.push(
        ...listen(context, desired),
        deps.caches.pods.onGap(() => timers.beginAnew()),
        // A turn later: the gap is told before what is there now.
        deps.caches.attachments.onGap(() => void deps.clock.after(0, () => context.watch.notifyAll())),
      );
      await takeStock(context, desired, signal);
      await timers.load(signal);
      active = true;
      deps.log.info("stock taken", { volumes: context.world.volumes.size, nodes: context.world.nodes.size });
      await Promise.all([
        markAllUnsettled(context, signal),
        runPlacements(context, signal),
        runStatusWriter(context, signal),
        runSilentNodes(context, signal),
        runClaims(context, desired, signal),
        runSweep(context, desired, signal),
        runVerify(context, signal),
        timers.run(signal),
      ]);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      active = false;
      for (const stop of leave) stop();
      for (const busy of context.running.keys()) busy.abort.abort(signal.reason);
      await Promise.all(context.running.values());
    }
  }

  return { context, run, followAll: () => context.claims.add(EVERY_CLAIM) };
}

/** Asks for every pod to be followed anew; no claim has an empty name. Rare, so it may be a walk. */
const EVERY_CLAIM = "" as ObjectKey;

function createContext(deps: AttachDetachDeps, options: AttachDetachOptions, active: () => boolean): Context {
  const { caches, client, clock, metrics, mayAct } = deps;
  const operations = new PendingOperations();
  const world = new World({ onForgotten: (volume) => operations.forget(volume) });
  const watch = createAttachmentWatch(caches.attachments, clock);
  const doubts = createDoubts(clock);
  const volumeNamed = (name: string) => caches.volumes.get(name as ObjectKey);
  const csi = createCsiPlugin({ client, drivers: caches.drivers, volumeNamed, watch, doubts, clock, mayAct });
  const registry = createPluginRegistry(() => [csi, ...deps.plugins()]);
  const tally = new Tally(registry);
  return {
    ...deps,
    options,
    world,
    tally,
    registry,
    csi,
    watch,
    doubts,
    foreign: new ForeignAttachments(world),
    active,
    operations,
    measure: createMeasure({ clock, metrics, tally, waits: () => waitsOf(world), populated: active }),
    placements: createWorkQueue<PlacementKey>({ clock, metrics }, { name: "placements", backoff: BACKOFF }),
    nodeStatus: createWorkQueue<NodeName>({ clock, metrics }, { name: "node-status", backoff: BACKOFF }),
    silentNodes: createWorkQueue<NodeName>({ clock, metrics }, { name: "silent-nodes", backoff: BACKOFF }),
    claims: createWorkQueue<ObjectKey>({ clock, metrics }, { name: "pvcs", backoff: CLAIM_BACKOFF }),
    running: new Map(),
    liveReads: new Map(),
  };
}

function createDesired(context: Context): DesiredDeps {
  const { caches, clock } = context;
  return {
    world: context.world,
    tally: context.tally,
    plugins: context.registry,
    caches: {
      claim: (key) => caches.claims.get(key),
      volume: (name) => caches.volumes.get(name as ObjectKey),
    },
    changed(placement) {
      if (placement.want) adoptUnread(context, placement);
      placement.timing = timingOf(placement, clock.now());
      markVolume(context, placement);
    },
    questionsChanged: (node) => markUnsettled(context, node),
    podLeft: (record) => beginAnewAfter(context, record),
    podEnded: (node) => markStayed(context, node),
  };
}

/** Stock taken at a start is not timed: when it was first wanted is not known. */
function timingOf({ want, hold }: Placement, nowMs: number) {
  if (want && !hold?.confirmed) return startTiming("attach", nowMs);
  return !want && hold ? startTiming("detach", nowMs) : undefined;
}

function* waitsOf(world: World) {
  for (const { waiting } of world.placements()) if (waiting) yield waiting;
  for (const node of world.nodes.values())
    for (const question of node.unresolved) yield questionWait(question);
}

/** Events only change what is known and mark what they touch; the queues' workers act. */
function listen(context: Context, desired: DesiredDeps): (() => void)[] {
  const { caches, claims } = context;
  const changesOnly = { changesOnly: true };
  return [
    caches.nodes.addHandler((delta) => onNode(context, delta), changesOnly),
    caches.attachments.addHandler((delta) => onAttachment(context, delta), changesOnly),
    caches.pods.addHandler((delta) => onPod(context, desired, delta), changesOnly),
    caches.claims.addHandler(({ kind, key }) => {
      if (kind !== "deleted") claims.add(key);
    }, changesOnly),
    caches.volumes.addHandler((delta) => onVolume(context, delta), changesOnly),
    caches.drivers.addHandler((delta) => onDriver(context, delta), changesOnly),
  ];
}

function onPod({ clock }: Context, desired: DesiredDeps, { kind, object }: Delta<Pod>): void {
  if (kind === "deleted") removePod(desired, object, clock.now());
  else setPod(desired, object, { nowMs: clock.now() });
}

/** Pods may have waited for it; the claim it is bound to leads to them. */
function onVolume(context: Context, delta: Delta<PersistentVolume>): void {
  const { kind, object } = delta;
  if (kind === "deleted") {
    onVolumeGone(context, object);
    return;
  }
  // Deleted and made again while the watch was cut off.
  const replaced = kind === "updated" && delta.old.metadata.uid !== object.metadata.uid;
  if (replaced) onVolumeGone(context, delta.old);
  if (kind === "added" || replaced) retryWith(context, object);
  const { namespace, name } = object.spec?.claimRef ?? {};
  if (name) context.claims.add(`${namespace ?? ""}/${name}` as ObjectKey);
  onVolumeAdded(context, object.metadata.name ?? "");
}

/** Whether a driver's volumes are attached at all has changed. */
function onDriver({ claims }: Context, delta: Delta<CSIDriver>): void {
  const before = delta.kind === "added" || needsAttach(delta.kind === "updated" ? delta.old : delta.object);
  const after = delta.kind === "deleted" || needsAttach(delta.object);
  if (before !== after) claims.add(EVERY_CLAIM);
}

function needsAttach({ spec }: CSIDriver): boolean {
  return spec.attachRequired !== false;
}

async function runPlacements(context: Context, signal: AbortSignal): Promise<void> {
  const { placements: queue, clock, log, metrics } = context;
  let looked = 0;
  const reconcile = async (key: PlacementKey) => {
    // A look takes microseconds and never waits, so a long queue would keep everybody else from their turn.
    if (++looked % LOOKS_A_TURN === 0) await clock.sleep(0);
    return reconcilePlacement(context, key);
  };
  await runWorkers({ queue, clock, log, metrics }, { workers: 1, reconcile }, signal);
}

const LOOKS_A_TURN = 500;

/** Claims that changed: the pods that use them may now be followed, or lead elsewhere than before. */
async function runClaims(context: Context, desired: DesiredDeps, signal: AbortSignal): Promise<void> {
  const { claims: queue, caches, clock, log, metrics } = context;
  const reconcile = async (key: ObjectKey) => {
    if (key === EVERY_CLAIM) await followAll(context, desired, signal);
    for (const pod of caches.pods.byIndex(POD_CLAIM_INDEX, key))
      setPod(desired, pod, { nowMs: clock.now(), again: true });
    return { kind: "done" } as const;
  };
  await runWorkers({ queue, clock, log, metrics }, { workers: 1, reconcile }, signal);
}
