import { assert } from "../base/assert.ts";
import { backoffMs } from "../base/backoff.ts";
import { ByNode } from "./by-node.ts";
import type { OperationKey } from "./key.ts";

/** After a failure: 0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122, ... seconds, as upstream waits. */
const BACKOFF = { initialMs: 500, maxMs: 122_000 } as const;

export interface RunningOperation {
  readonly key: OperationKey;
  readonly name: string;
}

export interface OperationBackoff {
  /** The first whole millisecond at which a start is let in: a timer set to it is never too early. */
  readonly untilMs: number;
  readonly lastError: string;
  /** Failures in a row. */
  readonly failures: number;
}

export type Start =
  | { readonly kind: "started" }
  /** Refused: this one is in flight and conflicts. */
  | { readonly kind: "running"; readonly key: OperationKey; readonly name: string }
  /** Refused: it failed a short while ago. */
  | { readonly kind: "backoff"; readonly untilMs: number; readonly lastError: string };

interface Failed {
  readonly key: OperationKey;
  readonly name: string;
  readonly failures: number;
  readonly lastError: string;
  readonly lastErrorMs: number;
}

interface OfVolume {
  readonly running: ByNode<RunningOperation>;
  readonly failed: ByNode<Failed>;
  /** Nobody knows this volume any more: what still runs is the last of it. */
  forgotten: boolean;
}

/**
 * At most one operation where it matters. Callers may rely on:
 *
 * - of two conflicting keys at most one runs, whatever the names of the operations;
 * - a failed operation of one name is refused until its back-off is over; another name on the same key is let in
 *   at once and neither reads nor resets that back-off, so attach and detach that fail in turns still slow down;
 * - a success ends the back-off of every name on the keys it conflicts with: the backend has answered for this
 *   volume, so what it said before is out of date. An attach that failed on a broken node must not delay the
 *   attach elsewhere by two minutes once the volume is off that node. This cannot become a tight loop:
 *   each round of it costs a detach that really worked, and somebody who moved the pod.
 *
 * A key with a node and one without it can follow each other, when the access modes of a volume become known: the
 * later takes over the failures of those it conflicts with.
 *
 * Bound: one entry an operation in flight, and one a (key, name) whose last try failed. `forget` drops those of a
 * volume; whoever drops a volume from its books calls it.
 */
export class PendingOperations {
  readonly #volumes = new Map<string, OfVolume>();

  start(key: OperationKey, name: string, nowMs: number): Start {
    const running = this.running(key);
    if (running) return { kind: "running", ...running };
    const backoff = this.backoffOf(key, name, nowMs);
    if (backoff) return { kind: "backoff", untilMs: backoff.untilMs, lastError: backoff.lastError };
    if (key.volume !== "") {
      const volume = this.#volumes.get(key.volume) ?? this.#add(key.volume);
      volume.running.add({ key, name });
      volume.forgotten = false;
    }
    return { kind: "started" };
  }

  /** The operation of this key ended well. */
  finish(key: OperationKey, name: string): void {
    if (key.volume === "") return;
    const volume = this.#end(key, name);
    for (const failed of volume.failed.conflicting(key)) volume.failed.remove(failed);
    this.#dropIfDead(key.volume, volume);
  }

  /** It did not. An operation without a volume has no history, so each failure of it is the first. */
  fail(key: OperationKey, name: string, error: string, nowMs: number): { retryAtMs: number } {
    const failure = { key, name, failures: 1, lastError: error, lastErrorMs: nowMs };
    if (key.volume === "") return { retryAtMs: retryAtMs(failure) };
    const volume = this.#end(key, name);
    for (const earlier of volume.failed.conflicting(key)) {
      if (earlier.name !== name) continue;
      failure.failures = Math.max(failure.failures, earlier.failures + 1);
      volume.failed.remove(earlier);
    }
    volume.failed.add(failure);
    this.#dropIfDead(key.volume, volume);
    return { retryAtMs: retryAtMs(failure) };
  }

  /** It was called off before it had an outcome: neither a success nor a failure. */
  abandon(key: OperationKey, name: string): void {
    if (key.volume === "") return;
    this.#dropIfDead(key.volume, this.#end(key, name));
  }

  /** What is in flight and conflicts with this key. */
  running(key: OperationKey): RunningOperation | undefined {
    return this.#volumes.get(key.volume)?.running.firstConflict(key);
  }

  /** Undefined once the operation may be tried again. */
  backoffOf(key: OperationKey, name: string, nowMs: number): OperationBackoff | undefined {
    const waiting = this.#volumes
      .get(key.volume)
      ?.failed.conflicting(key)
      .filter((failed) => failed.name === name && isWaiting(failed, nowMs));
    const [first, ...others] = waiting ?? [];
    if (!first) return undefined;
    const last = others.reduce((a, b) => (retryAtMs(b) > retryAtMs(a) ? b : a), first);
    return { untilMs: retryAtMs(last), lastError: last.lastError, failures: last.failures };
  }

  /**
   * The cause of the failures is known to have gone (the node is back, the driver was registered): every name may
   * start at once on this key and those it conflicts with, and its next failure counts as the first.
   */
  resetBackoff(key: OperationKey): void {
    const volume = this.#volumes.get(key.volume);
    if (!volume) return;
    for (const failed of volume.failed.conflicting(key)) volume.failed.remove(failed);
    this.#dropIfDead(key.volume, volume);
  }

  /** Nobody wants or holds this volume any more. What runs stays until it ends, then nothing is left. */
  forget(volumeName: string): void {
    const volume = this.#volumes.get(volumeName);
    if (!volume) return;
    volume.forgotten = true;
    this.#dropIfDead(volumeName, volume);
  }

  /** Volumes with anything in flight or failed: the size of the books. */
  get volumeCount(): number {
    return this.#volumes.size;
  }

  #add(name: string): OfVolume {
    const volume: OfVolume = { running: new ByNode(), failed: new ByNode(), forgotten: false };
    this.#volumes.set(name, volume);
    return volume;
  }

  #end(key: OperationKey, name: string): OfVolume {
    const volume = this.#volumes.get(key.volume);
    const running = volume?.running.firstConflict(key);
    // What conflicts with a key that runs is that key itself, or else two were let in.
    const isIt = running?.name === name && sameKey(running.key, key);
    assert(isIt, `${name} of ${JSON.stringify(key)} ended but ${JSON.stringify(running)} was running`);
    assert(volume !== undefined, `${name} ended on ${key.volume}, of which nothing runs`);
    volume.running.remove(running);
    return volume;
  }

  #dropIfDead(name: string, volume: OfVolume): void {
    if (!volume.running.isEmpty) return;
    if (volume.forgotten) volume.failed.clear();
    if (volume.failed.isEmpty) this.#volumes.delete(name);
  }
}

function isWaiting(failed: Failed, nowMs: number): boolean {
  return nowMs <= backoffEndMs(failed);
}

/** A try is let in when more than the back-off has passed, so not yet at its very end. */
function retryAtMs(failed: Failed): number {
  return Math.floor(backoffEndMs(failed)) + 1;
}

function backoffEndMs({ lastErrorMs, failures }: Failed): number {
  return lastErrorMs + backoffMs(failures, BACKOFF);
}

function sameKey(one: OperationKey, other: OperationKey): boolean {
  return (
    one.volume === other.volume &&
    (one.pod ?? "") === (other.pod ?? "") &&
    (one.node ?? "") === (other.node ?? "")
  );
}
