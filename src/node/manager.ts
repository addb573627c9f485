import type { Clock } from "../base/clock.ts";
import { createWorkQueue, type WorkQueue } from "../kube/workqueue/work-queue.ts";
import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import { PendingOperations } from "../operations/pending.ts";
import type { VolumeName } from "../volumes/names.ts";
import { createEvents } from "./arrivals.ts";
import { runAudit } from "./audit.ts";
import type { Context, NodeDeps } from "./context.ts";
import { mark } from "./context.ts";
import { followPod, lacksVolumes, releasePod } from "./desired.ts";
import { createEvidence } from "./evidence/evidence.ts";
import type { Blocker } from "./errors.ts";
import { createInUseList, type InUseList } from "./in-use.ts";
import { CALL_WINDOW_MS } from "./late-calls.ts";
import { createConfirmations } from "./restart/confirm.ts";
import { createJournal } from "./restart/journal.ts";
import { createMeasure } from "./measure.ts";
import { podStatesFromApi, type PodStates } from "./pod-states.ts";
import { newProgress, trySync } from "./progress.ts";
import { reconcileVolume } from "./reconcile.ts";
import { reconstruct } from "./restart/reconstruct.ts";
import { refreshPod } from "./refresh.ts";
import { createOrphanCleaner, listOrphans, type OrphanVerdict } from "./restart/orphans.ts";
import { createReport, type NodeReport, type ReportFilter } from "./answers/report.ts";
import { runPodSync } from "./answers/pod-sync.ts";
import { createQueries, type VolumeQueries } from "./answers/queries.ts";
import { belongingOf } from "./status.ts";
import { createWaits, type VolumeWaits } from "./answers/waits.ts";
import { createWaiters } from "./answers/waiters.ts";
import { NO_SELINUX, type Selinux } from "./steps/selinux.ts";
import { createSelinuxMeasure } from "./steps/selinux-metrics.ts";
import { World } from "./world.ts";

/**
 * The volume manager of one node: what its pods need is mounted, what they no longer need goes away, and what is in use
 * is said so. An event marks the pod or the volume it touches; a worker looks at that one. Nothing polls.
 */
export interface VolumeManager extends VolumeQueries, VolumeWaits {
  /** Takes stock of the disk, then works until the signal aborts; resolves when its last step has ended. */
  run(signal: AbortSignal): Promise<void>;
  /** Something a failed step waits for has changed: a driver was registered. */
  changed(blocker: Blocker): void;
  /** For a host with a container runtime of its own: containers of this pod began to end, or are gone. */
  podStateChanged(podUid: string): void;
  report(filter?: ReportFilter): NodeReport;
  /** Directories of pods that are gone, and what will become of each; changes nothing. */
  listOrphans(): Promise<readonly OrphanVerdict[]>;
}

export interface ManagerOptions {
  /** From the host's container runtime; without, the API has to do. */
  readonly podStates?: PodStates;
  /** When the first token of a pod should be replaced, in the clock's `now()`; its volumes are refreshed then. */
  readonly tokenDueAtMs?: (podUid: string) => number | undefined;
  /** False: attaching is the node's own business. No plugin here can, so what needs it is refused with upstream's text. */
  readonly controllerAttaches?: boolean;
  /** Of this machine; none where left out. */
  readonly selinux?: Selinux;
  /** Gate SELinuxMount: labels for every PersistentVolume, not only for those that one pod has for itself. */
  readonly selinuxMount?: boolean;
  /** How long after it began a call to a driver may be under way, answered or not. */
  readonly callWindowMs?: number | undefined;
  /** A CSI driver that lives in the agent's process: a call to it has ended with the process that made it. */
  readonly ownDriver?: string | undefined;
}

/** They share one look at the processes of the machine: 110 pods that went together cost 14, not 110. */
const ORPHANS_AT_ONCE = 16;

/**
 * What calls under way get to end by themselves when the process stops: nearly all take less, and one that is cut off has
 * to be waited for by the next process. Well below the 30 s a pod is given.
 */
const CUT_OFF_MS = 5_000;

/** For a look that threw, which is a defect; failures of steps have a back-off of their own. */
const BACKOFF = { initialMs: 500, maxMs: 60_000 };

export function createVolumeManager(deps: NodeDeps, options: ManagerOptions = {}): VolumeManager {
  const { clock, metrics, caches, host, log, nodeName } = deps;
  const world = new World();
  const { stop, cutOff, limits } = createLimits(clock, options);
  const queues = { clock, metrics };
  const volumes = createWorkQueue<VolumeName>(queues, { name: "node_volumes", backoff: BACKOFF });
  const pods = createWorkQueue<string>(queues, { name: "node_pods", backoff: BACKOFF });
  const refreshes = createWorkQueue<string>(queues, { name: "node_refreshes", backoff: BACKOFF });
  const orphans = createWorkQueue<string>(queues, { name: "node_orphans", backoff: BACKOFF });
  const waiters = createWaiters(clock);
  const state = newProgress();
  const podOf = (uid: string) => caches.pods.byIndex("uid", uid)[0];
  const podStates = options.podStates ?? podStatesFromApi(podOf, () => caches.pods.hasSynced());
  const inUse: InUseList = createInUseList(
    {
      ...deps,
      belonging: (name) => belongingOf(world.volumes.get(name as VolumeName)),
      earlier: () => ({ names: state.earlier, strays: (state.found?.strays.length ?? 0) > 0 }),
      ready: () => state.synced,
      onChange: (names) => {
        for (const name of names) volumes.add(name as VolumeName);
      },
    },
    { nodeName },
  );
  const context: Context = {
    ...deps,
    world,
    operations: new PendingOperations(),
    volumes,
    journal: createJournal({ ...deps, ...limits, files: host.files }),
    inUse,
    confirmations: createConfirmations((name) => volumes.add(name)),
    measure: createMeasure({ clock, metrics, world }),
    evidence: createEvidence({ ...deps, world, volumes, inUse }),
    podStates,
    tokenDueAtMs: options.tokenDueAtMs ?? (() => undefined),
    controllerAttaches: options.controllerAttaches ?? true,
    selinux: selinuxRules(deps, options),
    podChanged: (uid) => {
      waiters.changed(uid);
      // What was found without a name is given up as soon as the pod has it by its own.
      for (const volume of world.volumesOf(uid)) if (volume.held?.unknown) mark(context, volume);
      if (state.synced && !world.pods.has(uid)) orphans.add(uid);
    },
    followAgain: (uid) => pods.add(uid),
    readyToUnmount: () => state.synced,
    node: () => inUse.node(),
    running: new Set(),
    ...limits,
  };
  const events = createEvents(context, { pods, refreshes, onNode });
  const waits = createWaits(context, waiters);

  function lookAtPod(uid: string): Outcome {
    const pod = podOf(uid);
    if (pod) followPod(context, pod);
    else if (podStates.runtimeRemoved(uid)) {
      releasePod(context, uid);
      // Also of one that ended before its object went: its directory was its own until now.
      if (state.synced) orphans.add(uid);
    }
    return { kind: "done" };
  }

  function onNode(): void {
    // What went before this was left alone, and nothing will say so again.
    if (trySync(context, state)) void findOrphans();
  }

  /** Once states are synced, beside everything else: what cannot be read must not keep pods waiting; the audit looks again. */
  async function findOrphans(): Promise<void> {
    try {
      for (const { podUid } of await listOrphans(context)) orphans.add(podUid);
    } catch (error) {
      log.warn("directories of pods not read", { error });
    }
  }

  async function run(signal: AbortSignal): Promise<void> {
    const onAbort = () => stop.abort(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    const work = <K extends string>(
      queue: WorkQueue<K>,
      look: (key: K) => Outcome | Promise<Outcome>,
      workers = 1,
    ) =>
      runWorkers<K>({ ...queues, log, queue }, { workers, reconcile: async (key) => look(key) }, stop.signal);
    try {
      state.found = await reconstruct(context, (problem) => void (state.problem = problem));
      for (const name of world.volumes.keys()) inUse.touch(name);
      await caches.pods.whenSynced(signal);
      // Pods that wait come first: the others only have to be looked over.
      const all = [...caches.pods.objects()];
      const waiting = new Set(all.filter((pod) => lacksVolumes(context, pod)));
      for (const pod of new Set([...waiting, ...all])) followPod(context, pod);
      state.podsKnown = true;
      const leave = events.listen();
      for (const volume of world.volumes.values()) mark(context, volume);
      onNode();
      await Promise.all([
        work(volumes, (name) => reconcileVolume(context, name)),
        work(pods, lookAtPod),
        work(refreshes, (uid) => refreshPod(context, uid)),
        work(orphans, createOrphanCleaner(context), ORPHANS_AT_ONCE),
        inUse.run(stop.signal),
        runPodSync(context, waits, stop.signal),
        runAudit(context, { pods, orphans, state }, stop.signal),
      ]);
      leave();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    const patience = clock.after(CUT_OFF_MS, () => cutOff.abort(signal.reason));
    await Promise.all(context.running);
    patience.cancel();
  }

  return {
    run,
    ...createQueries(context, { synced: () => state.synced, intended: () => inUse.intended() }),
    ...waits,
    changed: (blocker) => events.changed(blocker),
    podStateChanged: (uid) => pods.add(uid),
    listOrphans: () => listOrphans(context),
    report: (filter = {}) => createReport(context, state, filter),
  };
}

/** When steps end that do not end by themselves. */
function createLimits(clock: Clock, { callWindowMs = CALL_WINDOW_MS, ownDriver }: ManagerOptions) {
  const stop = new AbortController();
  const cutOff = new AbortController();
  const signals = { stopping: stop.signal, cutOff: cutOff.signal };
  return { stop, cutOff, limits: { ...signals, startedAtMs: clock.now(), callWindowMs, ownDriver } };
}

function selinuxRules({ metrics }: NodeDeps, { selinux, selinuxMount }: ManagerOptions): Context["selinux"] {
  return {
    host: selinux ?? NO_SELINUX,
    everyVolume: selinuxMount ?? true,
    measure: createSelinuxMeasure(metrics),
  };
}
