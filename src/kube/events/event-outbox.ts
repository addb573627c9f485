import type { KubeEvent } from "../api/event.ts";
import { toKey } from "../object.ts";
import { Fifo } from "../workqueue/fifo.ts";

/** An event on its way to the API server. */
export interface Outgoing {
  readonly kind: "create" | "update";
  readonly event: KubeEvent;
  /** When it happened last, in the clock's `now()`. */
  readonly atMs: number;
}

/**
 * Events waiting to be sent, at most `max`. One that changes while it waits is replaced, not sent twice:
 * its count is absolute, so the newest says it all.
 */
export class EventOutbox {
  readonly #max: number;
  readonly #order = new Fifo<string>();
  readonly #waiting = new Map<string, Outgoing>();
  #wake: (() => void) | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** False if there is no room. */
  put(outgoing: Outgoing): boolean {
    const key = keyOf(outgoing);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined && this.#waiting.size >= this.#max) return false;
    if (waiting === undefined) this.#order.push(key);
    // Not yet created, it still has to be, with the count it has come to.
    this.#waiting.set(key, waiting === undefined ? outgoing : { ...outgoing, kind: waiting.kind });
    this.#wake?.();
    return true;
  }

  /**
   * One that could not be sent goes behind the others: nobody waits for it. What became of it meanwhile is what is sent. It had
   * a place, so it gets one again: with one sender, one above `max`.
   */
  putBack(outgoing: Outgoing): void {
    const key = keyOf(outgoing);
    const newer = this.#waiting.get(key);
    if (newer === undefined) this.#order.push(key);
    this.#waiting.set(key, newer === undefined ? outgoing : { ...newer, kind: outgoing.kind });
  }

  shift(): Outgoing | undefined {
    const key = this.#order.shift();
    if (key === undefined) return undefined;
    const outgoing = this.#waiting.get(key);
    this.#waiting.delete(key);
    return outgoing;
  }

  /** Resolves when something waits or the signal has aborted. For one sender. */
  async filled(signal: AbortSignal): Promise<void> {
    if (this.size > 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        this.#wake = undefined;
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#wake = wake;
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}

function keyOf({ event }: Outgoing): string {
  const { name = "", namespace } = event.metadata;
  return toKey({ name, namespace });
}
