import type { Clock } from "../base/clock.ts";
import type { VolumeName } from "../volumes/names.ts";

/** One call that reached the storage, in the order of arrival. */
export interface BackendCall {
  readonly what: "publish" | "unpublish";
  readonly volume: VolumeName;
  readonly node: string;
  readonly atMs: number;
}

/**
 * The storage behind CSI drivers: which volume is published on which node. It refuses nothing, also not what
 * would cost data, so that a checker sees what a controller did instead of what a clever backend prevented.
 */
export class CsiBackend {
  readonly #clock: Clock;
  readonly #nodes = new Map<VolumeName, Set<string>>();
  readonly #listeners = new Set<(call: BackendCall) => void>();
  /** Grows with every call; a simulation makes hundreds. */
  readonly calls: BackendCall[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  publish(volume: VolumeName, node: string): void {
    const nodes = this.#nodes.get(volume) ?? new Set();
    this.#nodes.set(volume, nodes.add(node));
    this.#note({ what: "publish", volume, node, atMs: this.#clock.now() });
  }

  unpublish(volume: VolumeName, node: string): void {
    this.#nodes.get(volume)?.delete(node);
    this.#note({ what: "unpublish", volume, node, atMs: this.#clock.now() });
  }

  publishedOn(volume: VolumeName): readonly string[] {
    return [...(this.#nodes.get(volume) ?? [])].sort();
  }

  /** Told of every call after it was carried out. */
  onCall(listener: (call: BackendCall) => void): void {
    this.#listeners.add(listener);
  }

  #note(call: BackendCall): void {
    this.calls.push(call);
    for (const listener of this.#listeners) listener(call);
  }
}
