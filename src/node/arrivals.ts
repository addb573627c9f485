import type { CSIDriver } from "../kube/api/csi-driver.ts";
import type { Node } from "../kube/api/node.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { Delta } from "../kube/informer/store.ts";
import type { WorkQueue } from "../kube/workqueue/work-queue.ts";
import { csiSourceOf } from "../volumes/spec.ts";
import { mark, type Context } from "./context.ts";
import { uidOf } from "./desired.ts";
import type { Blocker } from "./errors.ts";
import { blockerKey, blockerKeyOf } from "./references.ts";
import { metadataChanged, refreshByObject, refreshDelayMs, requestRefresh } from "./refresh.ts";
import { settleAttachability } from "./status.ts";
import type { VolumeState } from "./world.ts";

/** Events of the API and of drivers: each marks the pods and volumes it touches, and ends the back-off it was the cause of. */
export interface Arrivals {
  /** Answers how to leave. */
  listen(): () => void;
  changed(blocker: Blocker): void;
}

export interface ArrivalQueues {
  readonly pods: WorkQueue<string>;
  readonly refreshes: WorkQueue<string>;
  readonly onNode: () => void;
}

export function createEvents(context: Context, { pods, refreshes, onNode }: ArrivalQueues): Arrivals {
  const { world, caches, inUse } = context;

  function onPod(delta: Delta<Pod>): void {
    const uid = uidOf(delta.object);
    pods.add(uid);
    if (delta.kind === "added") refreshes.addAfter(uid, refreshDelayMs(context));
    if (delta.kind === "updated" && metadataChanged(delta.old, delta.object))
      for (const volume of world.volumesOf(uid)) requestRefresh(context, volume, uid);
  }

  function onNodeChange(delta: Delta<Node>): void {
    inUse.seeNode(delta.kind === "deleted" ? undefined : delta.object);
    onNode();
    if (delta.kind === "updated" && labelsOf(delta.old) !== labelsOf(delta.object)) changed({ kind: "node" });
  }

  function onDriver({ object }: Delta<CSIDriver>): void {
    const name = object.metadata.name ?? "";
    settleAttachability(world, inUse);
    for (const volume of world.volumes.values()) {
      if (driverOf(volume) !== name) continue;
      mark(context, volume);
      // With which label it is mounted depends on the driver, for pods that do not have it yet.
      for (const uid of volume.wants.keys()) if (!volume.held?.mounts.has(uid)) pods.add(uid);
    }
    changed({ kind: "csi-driver-object", name });
    inUse.changed();
  }

  function changed(blocker: Blocker): void {
    const key = blockerKey(blocker);
    for (const volume of world.volumes.values()) release(context, volume, key);
  }

  return {
    changed,
    listen() {
      caches.onObjectChange((resource, ref) => {
        const key = blockerKeyOf(resource, ref);
        for (const uid of world.followers.get(key) ?? []) {
          pods.add(uid);
          refreshByObject(context, uid, resource, ref);
          for (const volume of world.volumesOf(uid)) release(context, volume, key);
        }
      });
      const leave = [
        caches.pods.addHandler(onPod),
        caches.node.addHandler(onNodeChange),
        caches.drivers.addHandler(onDriver),
      ];
      return () => {
        for (const each of leave) each();
      };
    },
  };
}

/** What the last failure waited for has changed, so what it said is out of date. */
function release(context: Context, volume: VolumeState, key: string): void {
  const blocked = [...volume.blockers].filter(([, keys]) => keys.includes(key));
  for (const [podUid] of blocked) {
    volume.blockers.delete(podUid);
    context.operations.resetBackoff(
      podUid === "" ? { volume: volume.name } : { volume: volume.name, pod: podUid },
    );
  }
  if (blocked.length > 0) mark(context, volume);
}

function labelsOf({ metadata, status }: Node): string {
  return JSON.stringify([metadata.labels ?? {}, status?.allocatable ?? {}]);
}

function driverOf({ wants, held }: VolumeState): string | undefined {
  const spec = held?.spec ?? [...wants.values()][0]?.spec;
  return spec && csiSourceOf(spec)?.driver;
}
