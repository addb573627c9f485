import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { planBatch, type Batch, type Intent } from "./lmdb-batch.ts";
import type { Environment } from "./lmdb-environment.ts";
import { Garbage } from "./lmdb-garbage.ts";
import { encodeWrite, writeKey } from "./lmdb-records.ts";
import type { CommittedState } from "./state.ts";
import { StoreError, type StoreEvent, type StoreHealth } from "./store.ts";

/** Writes that may wait; each is a request that is being answered. Past it the store says so instead of growing. */
const WAITING_MAX = 10_000;
/** Writes in one commit: 1,000 of 2 kB are encoded and handed over in about 10 ms. */
const BATCH_MAX = 1_000;
/** Useless records that one commit removes at most: about 1 ms more. Twice what it writes keeps up with any load. */
const GARBAGE_MIN = 64;
const GARBAGE_MAX = 256;
/** A disk that takes this long for one commit is reported; etcd calls 10 ms slow. */
const STALLED_MS = 10_000;

/**
 * Group commit: one transaction at a time, and whatever arrives while it runs goes into the next one together. So
 * a lone writer waits for one sync, and 64 writers share theirs.
 *
 * Nothing of a batch is visible before it is on disk, and then all of it is, in the order of its revisions.
 * Revisions are given when a batch is formed and the one before is settled: a batch that fails leaves no gap.
 */
export class Writer {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #state: CommittedState;
  readonly #environment: Environment;
  readonly #garbage: Garbage;
  #waiting: Intent[] = [];
  /** Who waits until the file has forgotten up to a revision. */
  readonly #compactions = new Set<{ upTo: number; resolve: () => void; reject: (error: unknown) => void }>();
  #running: Promise<void> | undefined;
  #commitSinceMs: number | undefined;
  #full: StoreError | undefined;
  /** Set once; every write after that gets it. */
  #stopped: StoreError | undefined;

  constructor(deps: { clock: Clock; log: Logger; environment: Environment }, state: CommittedState) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#environment = deps.environment;
    this.#state = state;
    this.#garbage = new Garbage(state.compactedRevision);
  }

  get health(): StoreHealth {
    if (this.#stopped !== undefined) return { kind: "failed", why: this.#stopped.message };
    if (this.#full !== undefined) return { kind: "full", why: this.#full.message };
    const forMs = this.#commitSinceMs === undefined ? 0 : this.#clock.now() - this.#commitSinceMs;
    return forMs < STALLED_MS ? { kind: "ok" } : { kind: "stalled", forMs };
  }

  submit(intent: Intent): void {
    const refusal = this.#stopped ?? (this.#waiting.length < WAITING_MAX ? undefined : overloaded());
    if (refusal !== undefined) {
      intent.reject(refusal);
      return;
    }
    this.#waiting.push(intent);
    this.#start();
  }

  /** What the state has forgotten leaves the file with the commits to come. */
  discard(forgotten: readonly StoreEvent[]): void {
    this.#garbage.add(forgotten);
  }

  /** Resolves when the file has forgotten what the state had. */
  compact(): Promise<void> {
    const upTo = this.#state.compactedRevision;
    if (this.#garbage.compactedRevision >= upTo) return Promise.resolve();
    if (this.#stopped !== undefined) return Promise.reject(this.#stopped);
    return new Promise((resolve, reject) => {
      this.#compactions.add({ upTo, resolve, reject });
      this.#start();
    });
  }

  /** Refuses what waits and what comes; resolves when the commit under way is settled. */
  async stop(reason: StoreError): Promise<void> {
    this.#stopped ??= reason;
    this.#refuseAll(this.#stopped);
    await this.#running;
  }

  #start(): void {
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    // What is submitted in this turn of the event loop goes into the first batch together.
    await Promise.resolve();
    while (this.#stopped === undefined && (this.#waiting.length > 0 || this.#compactions.size > 0)) {
      await this.#commitNext();
    }
    // In the same breath as the last look at the queue, or a write submitted in between would wait for nobody.
    this.#running = undefined;
  }

  async #commitNext(): Promise<void> {
    const batch = planBatch(this.#state, this.#waiting.splice(0, BATCH_MAX));
    const count = Math.min(Math.max(2 * batch.events.length, GARBAGE_MIN), GARBAGE_MAX);
    const isWorthIt = batch.events.length > 0 || this.#compactions.size > 0;
    const { changes, taken } = this.#garbage.slice(isWorthIt ? count : 0);
    const puts = [...changes.puts, ...this.#encode(batch.events)];
    try {
      if (puts.length > 0) await this.#commit({ puts, removes: changes.removes });
    } catch (error) {
      this.#fail(batch, error);
      return;
    }
    taken();
    this.#succeed(batch);
  }

  async #commit(changes: Parameters<Environment["commit"]>[0]): Promise<void> {
    this.#commitSinceMs = this.#clock.now();
    try {
      await this.#environment.commit(changes);
    } finally {
      this.#commitSinceMs = undefined;
    }
  }

  #encode(events: readonly StoreEvent[]): { key: Buffer; value: Buffer }[] {
    const committedAtMs = this.#clock.wall().getTime();
    return events.map(({ type, object, previous }) => {
      const key = writeKey(object.revision);
      const previousRevision = previous?.revision ?? 0;
      return { key, value: encodeWrite(key, { type, object, previousRevision, committedAtMs }) };
    });
  }

  #succeed({ events, decisions }: Batch): void {
    if (this.#full !== undefined) this.#log.info("the store has room again");
    this.#full = undefined;
    for (const event of events) this.#state.apply(event);
    this.discard(this.#state.forgetOld(2 * events.length));
    for (const { intent, outcome } of decisions) intent.resolve(outcome);
    for (const compaction of this.#compactions) {
      if (compaction.upTo > this.#garbage.compactedRevision) continue;
      this.#compactions.delete(compaction);
      compaction.resolve();
    }
  }

  #fail({ decisions }: Batch, error: unknown): void {
    const reason =
      error instanceof StoreError ? error : new StoreError("WriteFailed", String(error), { cause: error });
    for (const { intent, outcome, isInBatch } of decisions) {
      if (isInBatch) intent.reject(reason);
      else intent.resolve(outcome);
    }
    if (reason.code === "Full") {
      if (this.#full === undefined) this.#log.error("the store is full", { error: reason.message });
      this.#full = reason;
      this.#refuseCompactions(reason);
      return;
    }
    this.#log.error("the store takes no more writes", { error: reason.message });
    this.#stopped ??= reason;
    this.#refuseAll(reason);
  }

  #refuseAll(reason: StoreError): void {
    for (const intent of this.#waiting.splice(0)) intent.reject(reason);
    this.#refuseCompactions(reason);
  }

  #refuseCompactions(reason: StoreError): void {
    for (const { reject } of this.#compactions) reject(reason);
    this.#compactions.clear();
  }
}

function overloaded(): StoreError {
  return new StoreError(
    "Overloaded",
    `write: ${WAITING_MAX} writes already wait for the disk; retry in a second`,
  );
}
