/**
 * A binary heap whose entries are found by key, so that "earliest first" and "this one changed its
 * mind" are both O(log n). Equal priorities come out in the order they went in: a queue built on it
 * is fair and a simulation on it is repeatable.
 */
export class KeyedHeap<K, V = undefined> {
  readonly #entries: Entry<K, V>[] = [];
  readonly #positions = new Map<K, number>();
  #sequence = 0;

  get size(): number {
    return this.#entries.length;
  }

  has(key: K): boolean {
    return this.#positions.has(key);
  }

  get(key: K): Entry<K, V> | undefined {
    const position = this.#positions.get(key);
    return position === undefined ? undefined : this.#entries[position];
  }

  /** Adds the key, or moves it if it is here already; it then queues behind its equals. */
  set(key: K, priority: number, value: V): void {
    const entry: Entry<K, V> = { key, priority, value, sequence: this.#sequence++ };
    const position = this.#positions.get(key);
    if (position === undefined) {
      this.#place(entry, this.#entries.length);
      this.#siftUp(this.#entries.length - 1);
    } else {
      this.#place(entry, position);
      this.#siftDown(this.#siftUp(position));
    }
  }

  delete(key: K): Entry<K, V> | undefined {
    const position = this.#positions.get(key);
    if (position === undefined) return undefined;
    const removed = this.#entries[position];
    const last = this.#entries.pop();
    this.#positions.delete(key);
    if (last !== undefined && last !== removed) {
      this.#place(last, position);
      this.#siftDown(this.#siftUp(position));
    }
    return removed;
  }

  peek(): Entry<K, V> | undefined {
    return this.#entries[0];
  }

  pop(): Entry<K, V> | undefined {
    const first = this.#entries[0];
    return first === undefined ? undefined : this.delete(first.key);
  }

  /** In no particular order. */
  entries(): Iterable<Entry<K, V>> {
    return this.#entries.values();
  }

  #place(entry: Entry<K, V>, position: number): void {
    this.#entries[position] = entry;
    this.#positions.set(entry.key, position);
  }

  #siftUp(start: number): number {
    let position = start;
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if (!this.#swapIfBefore(position, parent)) break;
      position = parent;
    }
    return position;
  }

  #siftDown(start: number): void {
    let position = start;
    for (;;) {
      const left = 2 * position + 1;
      if (left >= this.#entries.length) return;
      const right = left + 1;
      const child = right < this.#entries.length && this.#isBefore(right, left) ? right : left;
      if (!this.#swapIfBefore(child, position)) return;
      position = child;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [left, right] = [this.#entries[a], this.#entries[b]];
    if (left === undefined || right === undefined) return false;
    return left.priority === right.priority ? left.sequence < right.sequence : left.priority < right.priority;
  }

  #swapIfBefore(a: number, b: number): boolean {
    if (!this.#isBefore(a, b)) return false;
    const [left, right] = [this.#entries[a], this.#entries[b]];
    if (left === undefined || right === undefined) return false;
    this.#place(left, b);
    this.#place(right, a);
    return true;
  }
}

export interface Entry<K, V> {
  readonly key: K;
  /** Smallest first. */
  readonly priority: number;
  readonly value: V;
  readonly sequence: number;
}
