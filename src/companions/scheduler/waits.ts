import type { ObjectKey } from "../../kube/object.ts";
import type { Blocker } from "./view.ts";

/** Which pods wait for what; a change wakes those and no others. Bound: the pods without a node. */
export class Waits {
  readonly #byPod = new Map<ObjectKey, readonly Blocker[]>();
  readonly #byBlocker = new Map<Blocker, Set<ObjectKey>>();

  count(blocker: Blocker): number {
    return this.#byBlocker.get(blocker)?.size ?? 0;
  }

  set(pod: ObjectKey, until: readonly Blocker[]): void {
    this.clear(pod);
    this.#byPod.set(pod, until);
    for (const blocker of until) {
      const pods = this.#byBlocker.get(blocker) ?? new Set();
      this.#byBlocker.set(blocker, pods.add(pod));
    }
  }

  clear(pod: ObjectKey): void {
    for (const blocker of this.#byPod.get(pod) ?? []) this.#byBlocker.get(blocker)?.delete(pod);
    this.#byPod.delete(pod);
  }

  /** Those to look at again. They stay on the list until a look says otherwise. */
  on(blocker: Blocker): readonly ObjectKey[] {
    return [...(this.#byBlocker.get(blocker) ?? [])];
  }
}
