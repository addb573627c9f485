import type { Pod } from "../kube/api/pod.ts";
import { isPodTerminated } from "../volumes/resolve.ts";

/**
 * What became of a pod's containers. A host with a container runtime hands in its own; without one the API has to do,
 * where a deleted pod is gone and one without running containers is over.
 */
export interface PodStates {
  /** Termination has begun: no container of it can start any more. */
  containersTerminating(podUid: string): boolean;
  /** Every container is stopped for good: its volumes may go. */
  runtimeRemoved(podUid: string): boolean;
}

export function podStatesFromApi(podOf: (uid: string) => Pod | undefined, synced: () => boolean): PodStates {
  return {
    containersTerminating(uid) {
      const pod = podOf(uid);
      if (!pod) return synced();
      return Boolean(pod.metadata.deletionTimestamp) || isPodTerminated(pod);
    },
    runtimeRemoved(uid) {
      const pod = podOf(uid);
      return pod ? isPodTerminated(pod) : synced();
    },
  };
}
