import { keysConflict, type OperationKey } from "./key.ts";

interface Keyed {
  readonly key: OperationKey;
}

/**
 * Things of one volume, found by the key they conflict with. A volume shared by 5,000 nodes has 5,000 keys, and
 * each conflicts with those of its own node and of no node only: that is where the look goes.
 */
export class ByNode<T extends Keyed> {
  readonly #lists = new Map<string, T[]>();

  get isEmpty(): boolean {
    return this.#lists.size === 0;
  }

  add(item: T): void {
    const node = item.key.node ?? "";
    const list = this.#lists.get(node);
    if (list) list.push(item);
    else this.#lists.set(node, [item]);
  }

  remove(item: T): void {
    const node = item.key.node ?? "";
    const left = this.#lists.get(node)?.filter((other) => other !== item) ?? [];
    if (left.length > 0) this.#lists.set(node, left);
    else this.#lists.delete(node);
  }

  clear(): void {
    this.#lists.clear();
  }

  /** The first that conflicts; O(1) for a key with a node, and for one without pod or node. */
  firstConflict(key: OperationKey): T | undefined {
    for (const list of this.#listsFor(key)) {
      const found = list.find((item) => keysConflict(item.key, key));
      if (found) return found;
    }
    return undefined;
  }

  conflicting(key: OperationKey): T[] {
    return [...this.#listsFor(key)].flatMap((list) => list.filter((item) => keysConflict(item.key, key)));
  }

  *#listsFor({ node }: OperationKey): Iterable<readonly T[]> {
    if (!node) {
      yield* this.#lists.values();
      return;
    }
    yield this.#lists.get(node) ?? [];
    yield this.#lists.get("") ?? [];
  }
}
