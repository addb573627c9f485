import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { ObjectKey } from "../../kube/object.ts";

/**
 * Pods on their way to a node: chosen, and not yet seen there in the cache. They count as if they were there, so that two
 * pods never get the same last place. Bound: as many as there are pods without a node.
 */
export interface Placement {
  readonly uid: string;
  readonly node: string;
  /** Promised to its claims. */
  readonly promised: readonly PersistentVolume[];
  /** A request that binds it was sent, and may have been carried out. */
  readonly inDoubt: boolean;
}

export class Placements {
  readonly #byPod = new Map<ObjectKey, Placement>();
  readonly #byNode = new Map<string, Set<ObjectKey>>();

  get(key: ObjectKey): Placement | undefined {
    return this.#byPod.get(key);
  }

  on(node: string): Iterable<ObjectKey> {
    return this.#byNode.get(node) ?? [];
  }

  set(key: ObjectKey, pod: Pod, placement: Omit<Placement, "uid">): void {
    this.drop(key);
    this.#byPod.set(key, { ...placement, uid: pod.metadata.uid ?? "" });
    const keys = this.#byNode.get(placement.node) ?? new Set();
    this.#byNode.set(placement.node, keys.add(key));
  }

  /** True if there was one. */
  drop(key: ObjectKey): boolean {
    const placement = this.#byPod.get(key);
    if (!placement) return false;
    this.#byPod.delete(key);
    const keys = this.#byNode.get(placement.node);
    keys?.delete(key);
    if (keys?.size === 0) this.#byNode.delete(placement.node);
    return true;
  }
}
