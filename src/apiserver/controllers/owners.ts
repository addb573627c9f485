import type { OwnerReference } from "kubernetes-types/meta/v1.js";
import { keyFor } from "../request.ts";
import type { StoreKey } from "../store/store.ts";
import { findType, toText } from "./served.ts";

/** An ownerReference, and which object of this store it means. */
export interface Owner {
  readonly uid: string;
  /** Whether the owner, deleted in the foreground, waits for the dependant. */
  readonly blocks: boolean;
  /**
   * Undefined when nothing can be known about the owner: its kind is not served here, or it would have to lie in a
   * namespace where its dependant lies in none. Such an owner keeps its dependant.
   */
  readonly key: StoreKey | undefined;
}

/** A namespaced owner is looked for in the dependant's own namespace, wherever an object of that uid may be. */
export function resolveOwner(dependant: StoreKey, reference: OwnerReference): Owner {
  const kind = findType(reference.apiVersion, reference.kind);
  const isUnknown = kind === undefined || (kind.namespaced && dependant.namespace === "");
  return {
    uid: reference.uid,
    blocks: reference.blockOwnerDeletion === true,
    key: isUnknown
      ? undefined
      : keyFor(kind, kind.namespaced ? dependant.namespace : undefined, reference.name),
  };
}

/**
 * Who is owned by whom, by the keys of `toText`. Holds one entry a reference, so it is as large as the ownerReferences in
 * the store; objects without any are not in it.
 */
export class OwnerIndex {
  readonly #owners = new Map<string, readonly Owner[]>();
  readonly #dependants = new Map<string, Dependants>();

  clear(): void {
    this.#owners.clear();
    this.#dependants.clear();
  }

  ownersOf(dependant: string): readonly Owner[] {
    return this.#owners.get(dependant) ?? [];
  }

  /** All that name this very object as an owner. */
  dependantsOf(owner: string, uid: string): readonly string[] {
    return [...(this.#dependants.get(identity(owner, uid))?.all ?? [])];
  }

  /** Whether one of them, other than itself, holds up its deletion in the foreground. */
  isBlocked(owner: string, uid: string): boolean {
    return (this.#dependants.get(identity(owner, uid))?.blocking.size ?? 0) > 0;
  }

  /**
   * Whether an object holds up itself: following blocking dependants, as long as `isWaiting` says that they wait for
   * theirs, leads back to it. Looks at no more than what hangs below it.
   */
  isInCircle(start: string, uidOf: (key: string) => string, isWaiting: (key: string) => boolean): boolean {
    const seen = new Set<string>();
    const next = [start];
    for (let owner = next.pop(); owner !== undefined; owner = next.pop()) {
      const blocking = this.#dependants.get(identity(owner, uidOf(owner)))?.blocking ?? [];
      for (const dependant of blocking) {
        if (dependant === start) return true;
        if (seen.has(dependant) || !isWaiting(dependant)) continue;
        seen.add(dependant);
        next.push(dependant);
      }
    }
    return false;
  }

  set(dependant: string, owners: readonly Owner[]): void {
    for (const owner of this.ownersOf(dependant)) this.#unlink(dependant, owner);
    if (owners.length === 0) this.#owners.delete(dependant);
    else this.#owners.set(dependant, owners);
    for (const owner of owners) this.#link(dependant, owner);
  }

  #link(dependant: string, { key, uid, blocks }: Owner): void {
    if (key === undefined) return;
    const owner = toText(key);
    const id = identity(owner, uid);
    let dependants = this.#dependants.get(id);
    if (dependants === undefined) {
      this.#dependants.set(id, (dependants = { all: new Set(), blocking: new Set() }));
    }
    dependants.all.add(dependant);
    if (blocks && owner !== dependant) dependants.blocking.add(dependant);
  }

  #unlink(dependant: string, { key, uid }: Owner): void {
    if (key === undefined) return;
    const id = identity(toText(key), uid);
    const dependants = this.#dependants.get(id);
    if (dependants === undefined) return;
    dependants.all.delete(dependant);
    dependants.blocking.delete(dependant);
    if (dependants.all.size === 0) this.#dependants.delete(id);
  }
}

interface Dependants {
  readonly all: Set<string>;
  readonly blocking: Set<string>;
}

function identity(owner: string, uid: string): string {
  return `${owner} ${uid}`;
}
