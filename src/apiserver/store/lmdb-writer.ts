import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { planBatch, type Batch, type Intent } from "./lmdb-batch.ts";
import type { Changes, Environment, Purpose } from "./lmdb-environment.ts";
import { changesWithoutHistory, FULL_BATCH_MAX, mayUseReserve } from "./lmdb-full.ts";
import { Garbage } from "./lmdb-garbage.ts";
import { encodeHead, encodeWrite, HEAD_KEY, writeKey } from "./lmdb-records.ts";
import type { CommittedState } from "./state.ts";
import { StoreError, type StoreEvent, type StoreHealth } from "./store.ts";

/** Writes that may wait; each is a request that is being answered. Past it the store says so instead of growing. */
const WAITING_MAX = 10_000;
/** Writes in one commit: 1,000 of 2 kB are encoded and handed over in about 10 ms. */
const BATCH_MAX = 1_000;
/** Useless records that one commit removes at most: about 1 ms more. Twice what it writes keeps up with any load. */
const GARBAGE_MIN = 64;
const GARBAGE_MAX = 256;
/** The same on a full disk, where all that a commit writes has to fit into the reserve, and so many until it is tried again. */
const FULL_GARBAGE = 32;
const FULL_SLICES = 8;
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
    this.#full = deps.environment.shortage();
    if (this.#full !== undefined) this.#log.error("the store is full", { error: this.#full.message });
  }

  get health(): StoreHealth {
    if (this.#stopped !== undefined) return { kind: "failed", why: this.#stopped.message };
    // Asked again: where nobody writes, nobody would find out that there is room.
    const full = this.#full && this.#environment.shortage();
    if (full !== undefined) return { kind: "full", why: full.message };
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
  discard(forgotten: Iterable<StoreEvent>): void {
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
    const isFull = this.#full !== undefined;
    const intents = this.#waiting.splice(0, isFull ? FULL_BATCH_MAX : BATCH_MAX);
    const batch = planBatch(this.#state, intents);
    try {
      await this.#commitBatch(batch);
      this.#succeed(batch);
    } catch (error) {
      if (!isFullError(error)) {
        this.#fail(batch, error);
        return;
      }
      this.#noteFull(error);
      this.#waiting.unshift(...intents.slice(FULL_BATCH_MAX));
      await this.#commitOnFullDisk(intents.slice(0, FULL_BATCH_MAX), error);
    }
  }

  /** With a slice of what became useless, or that alone where somebody waits for it. */
  async #commitBatch({ events }: Batch): Promise<void> {
    const count = Math.min(Math.max(2 * events.length, GARBAGE_MIN), GARBAGE_MAX);
    const isWorthIt = events.length > 0 || this.#compactions.size > 0;
    const { changes, taken } = this.#garbage.slice(isWorthIt ? count : 0);
    const puts = [...changes.puts, ...this.#encode(events)];
    if (puts.length === 0) return;
    await this.#commit({ puts, removes: changes.removes }, events.length > 0 ? "growth" : "removal");
    taken();
  }

  /** History goes first. If that is not enough, what does not grow; if that is too much, what lets go. */
  async #commitOnFullDisk(intents: readonly Intent[], reason: StoreError): Promise<void> {
    try {
      for (let isMore = true; isMore;) {
        isMore = await this.#forgetInFile();
        const batch = planBatch(this.#state, intents);
        if (await this.#succeeds(() => this.#commitBatch(batch))) {
          this.#succeed(batch);
          return;
        }
      }
      for (const purpose of ["steady", "removal"] as const) {
        const allowed = intents.filter((intent) => mayUseReserve(this.#state, intent, purpose));
        const batch = planBatch(this.#state, allowed);
        if (!(await this.#succeeds(() => this.#commitWithoutHistory(batch, purpose)))) continue;
        for (const intent of intents) if (!allowed.includes(intent)) intent.reject(reason);
        this.#settle(batch);
        return;
      }
      throw reason;
    } catch (error) {
      this.#fail(planBatch(this.#state, intents), error);
    }
  }

  async #succeeds(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (isFullError(error)) return false;
      throw error;
    }
  }

  async #commitWithoutHistory(batch: Batch, purpose: Purpose): Promise<void> {
    if (batch.events.length === 0) return;
    const committedAtMs = this.#clock.wall().getTime();
    const encode = (event: StoreEvent) => encodeEvent(event, committedAtMs);
    const { changes, compactedRevision } = changesWithoutHistory(batch, encode);
    await this.#commit(changes, purpose);
    this.#garbage.skipTo(compactedRevision);
  }

  /**
   * The file forgets what memory still tells. Answers whether there is more to forget. Pages are free for the second commit
   * after the one that let go of them, so that the last slice is followed by two that change nothing.
   */
  async #forgetInFile(): Promise<boolean> {
    this.discard(this.#state.eventsAfter(this.#garbage.knownUpTo));
    if (this.#garbage.size === 0) return false;
    for (let slice = 0; slice < FULL_SLICES && this.#garbage.size > 0; slice++) {
      const { changes, taken } = this.#garbage.slice(FULL_GARBAGE);
      await this.#commit(changes, "removal");
      taken();
    }
    if (this.#garbage.size > 0) return true;
    const head = { key: HEAD_KEY, value: encodeHead({ compactedRevision: this.#garbage.compactedRevision }) };
    for (const _ of [1, 2]) await this.#commit({ puts: [head], removes: [] }, "removal");
    return false;
  }

  async #commit(changes: Changes, purpose: Purpose): Promise<void> {
    this.#commitSinceMs = this.#clock.now();
    try {
      await this.#environment.commit(changes, purpose);
    } finally {
      this.#commitSinceMs = undefined;
    }
  }

  #encode(events: readonly StoreEvent[]): { key: Buffer; value: Buffer }[] {
    const committedAtMs = this.#clock.wall().getTime();
    return events.map((event) => encodeEvent(event, committedAtMs));
  }

  #succeed(batch: Batch): void {
    // Room within the file is used up again by the next few writes; only the disk can end it.
    if (this.#full !== undefined && this.#environment.shortage() === undefined) {
      this.#log.info("the store has room again");
      this.#full = undefined;
    }
    this.#settle(batch);
  }

  /** It is on disk: from here on everyone sees it. */
  #settle({ events, decisions }: Batch): void {
    for (const event of events) this.#state.apply(event);
    this.discard(this.#state.forgetOld(2 * events.length));
    for (const { intent, outcome } of decisions) intent.resolve(outcome);
    for (const compaction of this.#compactions) {
      if (compaction.upTo > this.#garbage.compactedRevision) continue;
      this.#compactions.delete(compaction);
      compaction.resolve();
    }
  }

  #noteFull(reason: StoreError): void {
    if (this.#full === undefined) this.#log.error("the store is full", { error: reason.message });
    this.#full = reason;
  }

  #fail({ decisions }: Batch, error: unknown): void {
    const reason =
      error instanceof StoreError ? error : new StoreError("WriteFailed", String(error), { cause: error });
    for (const { intent, outcome, isInBatch } of decisions) {
      if (isInBatch) intent.reject(reason);
      else intent.resolve(outcome);
    }
    if (reason.code === "Full") {
      this.#noteFull(reason);
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

function isFullError(error: unknown): error is StoreError {
  return error instanceof StoreError && error.code === "Full";
}

function encodeEvent(event: StoreEvent, committedAtMs: number): { key: Buffer; value: Buffer } {
  const { type, object, previous } = event;
  const key = writeKey(object.revision);
  const previousRevision = previous?.revision ?? 0;
  return { key, value: encodeWrite(key, { type, object, previousRevision, committedAtMs }) };
}

function overloaded(): StoreError {
  return new StoreError(
    "Overloaded",
    `write: ${WAITING_MAX} writes already wait for the disk; retry in a second`,
  );
}
