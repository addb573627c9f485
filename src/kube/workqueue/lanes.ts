import { Fifo } from "./fifo.ts";

/**
 * Keys in lanes that take turns. A lane is in the ring exactly while it has a key that may start, so
 * taking the next key looks at one lane, however many lanes and keys there are. A lane without keys and
 * without work is forgotten: nodes come and go.
 */
export class LaneRing<K> {
  readonly #perLaneMax: number;
  readonly #lanes = new Map<string, Lane<K>>();
  readonly #ring = new Fifo<Lane<K>>();

  constructor(perLaneMax: number) {
    this.#perLaneMax = perLaneMax;
  }

  push(name: string, key: K): void {
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { name, keys: new Fifo<K>(), running: 0, inRing: false };
      this.#lanes.set(name, lane);
    }
    lane.keys.push(key);
    this.#join(lane);
  }

  /** The first key of the lane whose turn it is; that lane then queues behind the others. */
  take(): { key: K; lane: string } | undefined {
    const lane = this.#ring.shift();
    const key = lane?.keys.shift();
    if (lane === undefined || key === undefined) return undefined;
    lane.inRing = false;
    lane.running++;
    this.#join(lane);
    return { key, lane: lane.name };
  }

  /** A key of this lane is no longer in work. */
  release(name: string): void {
    const lane = this.#lanes.get(name);
    if (lane === undefined) return;
    lane.running--;
    this.#join(lane);
    if (lane.running === 0 && lane.keys.size === 0) this.#lanes.delete(name);
  }

  #join(lane: Lane<K>): void {
    if (lane.inRing || lane.keys.size === 0 || lane.running >= this.#perLaneMax) return;
    lane.inRing = true;
    this.#ring.push(lane);
  }
}

interface Lane<K> {
  readonly name: string;
  readonly keys: Fifo<K>;
  running: number;
  inRing: boolean;
}
