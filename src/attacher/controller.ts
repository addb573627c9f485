import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { CSINode } from "../kube/api/csi-node.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { hasFinalizer } from "../kube/finalizers.ts";
import type { Delta } from "../kube/informer/store.ts";
import { toKey } from "../kube/object.ts";
import { jsonEqual } from "../kube/patch/json.ts";
import { runWorkers, type Outcome } from "../kube/workqueue/controller.ts";
import { createWorkQueue, type WorkQueue } from "../kube/workqueue/work-queue.ts";
import { BY_HANDLE, BY_NODE, BY_VOLUME, type AttacherCaches } from "./caches.ts";
import type { ControllerDriver, DriverFacts } from "./driver.ts";
import { createAttachmentLanes } from "./attachment-lanes.ts";
import { isReasonToLook } from "./event-filter.ts";
import { finalizerOf } from "./names.ts";
import { registeredNodeId } from "./node-id.ts";
import type { AttacherOptions } from "./options.ts";
import { createReport, type AttachmentReport, type ReportFilter } from "./report.ts";
import { createReconciler } from "./reconciler.ts";
import { handleOfVolume, volumeNameOf } from "./source.ts";
import { isToBeReleased, planVolume } from "./volume-finalizer.ts";

export interface AttacherDeps {
  readonly client: Pick<Client, "get" | "patch">;
  readonly caches: AttacherCaches;
  readonly driver: ControllerDriver;
  readonly facts: DriverFacts;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** False once another replica may act; asked right before every write and call. */
  readonly mayAct: () => boolean;
}

/** Turns the VolumeAttachments of one driver into calls to it. The caches run elsewhere, shared with other drivers. */
export interface Attacher {
  /** Resolves when the signal aborted and what was under way has ended. */
  run(signal: AbortSignal): Promise<void>;
  /** Its attachments, and what each waits for: the page `/debug/attachments`. */
  report(filter: ReportFilter): readonly AttachmentReport[];
}

export function createAttacher(deps: AttacherDeps, options: AttacherOptions): Attacher {
  const { client, caches, clock, facts, metrics } = deps;
  const log = deps.log.with({ driver: facts.name });
  const holder = { driver: facts.name, finalizer: finalizerOf(facts.name) };
  const lanes = createAttachmentLanes({ ...deps, log }, options);
  const reconciler = createReconciler({ ...deps, log, lanes }, options);
  const volumeQueue: WorkQueue<string> = createWorkQueue<string>(
    { clock, metrics },
    {
      name: `csi-attacher-pv${options.queueSuffix}`,
      backoff: { initialMs: options.retryInitialMs, maxMs: options.retryMaxMs },
    },
  );
  const isOurs = ({ spec }: VolumeAttachment) => spec.attacher === facts.name;
  // A driver that publishes nothing never had a finalizer, and waits for nothing.
  const { publishes } = facts.capabilities;

  function onAttachment(delta: Delta<VolumeAttachment>): void {
    const { kind, object } = delta;
    if (kind === "deleted" && publishes) {
      const volume = volumeNameOf(object);
      if (volume !== "") volumeQueue.add(volume);
    }
    if (!isOurs(object)) return;
    if (kind === "deleted") lanes.vanished(object);
    else lanes.changed(object, { look: kind === "added" || isReasonToLook(delta.old, object) });
  }

  function onVolume(delta: Delta<PersistentVolume>): void {
    const { kind, object } = delta;
    const name = object.metadata.name ?? "";
    if (kind === "deleted") {
      volumeQueue.forget(name);
      wake(BY_VOLUME, name);
      return;
    }
    if (isToBeReleased(object, holder)) volumeQueue.add(name);
    if (kind === "added" || isNewsOfVolume(delta.old, object)) wake(BY_VOLUME, name);
    // It may be the disk of one whose own PersistentVolume is gone.
    if (kind === "added") wake(BY_HANDLE, handleOfVolume(object));
  }

  function onNode(delta: Delta<CSINode>): void {
    const { kind, object } = delta;
    const before = kind === "updated" ? registeredNodeId(delta.old, facts.name) : undefined;
    const after = kind === "deleted" ? undefined : registeredNodeId(object, facts.name);
    if (after !== before) wake(BY_NODE, object.metadata.name ?? "");
  }

  /** What an attachment failed for may be gone: its back-off, up to five minutes, is worth nothing now. */
  function wake(index: string, value: string): void {
    for (const attachment of caches.attachments.byIndex(index, value)) {
      if (isOurs(attachment)) lanes.wake(attachment);
    }
  }

  async function reconcileVolume(name: string, signal: AbortSignal): Promise<Outcome> {
    const volume = caches.volumes.get(toKey({ name }));
    const attachments = caches.attachments.byIndex(BY_VOLUME, name).length;
    const operations = volume && planVolume(volume, holder, { attachments });
    if (operations === undefined) return { kind: "done" };
    if (!deps.mayAct()) throw new Error("this replica may no longer act");
    try {
      await client.patch(persistentVolumes, { name }, { type: "json", operations }, { signal });
      log.info("volume let go", { volume: name });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return { kind: "done" };
  }

  function subscribe(): () => void {
    const leave = [caches.attachments.addHandler(onAttachment)];
    if (publishes) leave.push(caches.volumes.addHandler(onVolume), caches.nodes.addHandler(onNode));
    return () => leave.forEach((end) => end());
  }

  return {
    report: (filter) => createReport({ caches, clock, lanes, driver: facts.name }, filter),
    async run(signal) {
      const unsubscribe = subscribe();
      try {
        await caches.whenSynced(signal);
        log.info("attacher works", { publishes, workers: options.workers });
        await Promise.all([
          lanes.run(signal),
          runWorkers(
            { queue: volumeQueue, clock, log, metrics },
            { workers: options.workers, reconcile: reconcileVolume },
            signal,
          ),
          reconciler.run(signal),
        ]);
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        unsubscribe();
      }
    },
  };

  /**
   * Only what an attachment can wait for: others write annotations all day. That the volume is held now is our own doing:
   * taken for news, it would start the second try at once and skip the back-off.
   */
  function isNewsOfVolume(old: PersistentVolume, volume: PersistentVolume): boolean {
    return (
      old.metadata.deletionTimestamp !== volume.metadata.deletionTimestamp ||
      (hasFinalizer(old, holder.finalizer) && !hasFinalizer(volume, holder.finalizer)) ||
      (old !== volume && !jsonEqual(old.spec, volume.spec))
    );
  }
}
