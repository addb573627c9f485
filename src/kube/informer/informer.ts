import { abortReason, type Clock } from "../../base/clock.ts";
import { silentLogger, type Logger } from "../../base/log.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import type { Random } from "../../base/random.ts";
import type { Client } from "../client/client.ts";
import { createInformerMetrics } from "./informer-metrics.ts";
import { keyOf, resourceName, type KubeObject, type ObjectKey } from "../object.ts";
import { createReflector, type HistoryGap, type ReflectorOptions, type ReflectorSink } from "./reflector.ts";
import { ObjectStore, type Delta, type IndexFunction } from "./store.ts";
import { trimBookkeeping, type Trim } from "./trim.ts";
import type { WatchEvent } from "./watch.ts";

/**
 * A live copy of one kind, and a word to whoever asked for every change of it.
 *
 * Callers may rely on: for each key a handler sees added, updated*, deleted, in that order, with the old
 * object in updates; whoever adds them up has the cache; a handler that throws hurts nobody else; it never
 * stops before its signal does. After a time without contact (`stalenessMs`) one relist tells the difference,
 * with a deletion seen only by its absence marked as a tombstone; whoever counts on what did not happen hears of
 * every such gap by `onGap`, before the difference.
 *
 * Callers may not rely on: seeing every intermediate state across such a gap, or on objects being complete:
 * they are trimmed, shared and must not be changed.
 */
export interface Informer<T extends KubeObject> {
  run(signal: AbortSignal): Promise<void>;
  /** Told of everything there is, unless `changesOnly`, then of every change. Answers how to leave. */
  addHandler(handler: Handler<T>, options?: { readonly changesOnly?: boolean }): () => void;
  /**
   * Told whenever the whole state is taken anew, whatever the reason, but not of the first: an object that came and went
   * between the two versions was told to nobody. Answers how to leave.
   */
  onGap(handler: (gap: HistoryGap) => void): () => void;
  get(key: ObjectKey): T | undefined;
  objects(): Iterable<T>;
  readonly size: number;
  byIndex(name: string, value: string): readonly T[];
  /** The first complete state is here and every handler was told of it. */
  hasSynced(): boolean;
  whenSynced(signal?: AbortSignal): Promise<void>;
  /** Milliseconds since the server last said anything; Infinity before it ever did. */
  stalenessMs(): number;
  /** The resourceVersion up to which every change was told; undefined before the first complete state. */
  version(): string | undefined;
  /**
   * For how long the present watch has been open; 0 while none is. What a server remembers it sends as soon as a watch is
   * opened, so a watch of a moment ago may not have brought it yet.
   */
  watchedMs(): number;
}

/** Called for one change at a time; should only mark keys, and must not take long. Its answer is ignored. */
export type Handler<T extends KubeObject> = (delta: Delta<T>) => unknown;

export interface InformerOptions<T extends KubeObject> extends ReflectorOptions<T> {
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** What to keep of an object; the default drops managed fields and kubectl's copy. */
  readonly trim?: Trim<T>;
  /** Every so often handlers are told every object again (`old === object`); absent means never. */
  readonly resyncMs?: number | undefined;
}

/** Objects told again a turn of the event loop, so that a resync of 100,000 delays nothing else. */
const RESYNC_SLICE = 1_000;

export interface InformerDeps {
  readonly client: Pick<Client, "list" | "watch">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Logger;
  readonly metrics?: Metrics;
}

export function createInformer<T extends KubeObject>(
  deps: InformerDeps,
  options: InformerOptions<T>,
): Informer<T> {
  const { clock, log = silentLogger, metrics = noMetrics } = deps;
  const { resource, indexes = {}, trim = trimBookkeeping, resyncMs, ...selection } = options;
  const name = resourceName(resource);
  const store = new ObjectStore<T>(indexes);
  const handlers = new Set<Handler<T>>();
  const gapHandlers = new Set<(gap: HistoryGap) => void>();
  const syncWaiters = new Set<() => void>();
  let synced = false;
  let heardAtMs = -Infinity;
  let failing = false;
  const measure = createInformerMetrics(metrics, name, {
    objects: () => store.size,
    stalenessMs: () => clock.now() - heardAtMs,
  });

  function tell(handler: Handler<T>, delta: Delta<T>): void {
    try {
      const answer = handler(delta);
      // An async handler's failure comes later, and must not end the process.
      if (answer instanceof Promise) answer.catch((error: unknown) => handlerFailed(delta, error));
    } catch (error) {
      handlerFailed(delta, error);
    }
  }

  function handlerFailed({ key, kind }: Delta<T>, error: unknown): void {
    measure.handlerFailed();
    log.error("informer handler failed; others were told", { resource: name, key, kind, error });
  }

  function tellGap(handler: (gap: HistoryGap) => void, gap: HistoryGap): void {
    try {
      handler(gap);
    } catch (error) {
      measure.handlerFailed();
      log.error("informer handler failed; others were told", { resource: name, ...gap, error });
    }
  }

  function deliver(deltas: readonly Delta<T>[]): void {
    for (const delta of deltas) for (const handler of handlers) tell(handler, delta);
  }

  /** One bad object never stops the rest: what cannot be trimmed or keyed is counted and left out. */
  function accept(object: T): T | undefined {
    try {
      if (!keyOf(object)) throw new TypeError("metadata.name is missing");
      return trim(object);
    } catch (error) {
      measure.badObject();
      log.error("object left out of the cache", { resource: name, key: keyOf(object), error });
      return undefined;
    }
  }

  const sink: ReflectorSink<T> = {
    beginReplace() {
      const replacement = store.beginReplace();
      return {
        offer(object) {
          const kept = accept(object);
          if (kept !== undefined) replacement.offer(kept);
        },
        retract: (object) => replacement.retract(object),
        commit(gap) {
          if (gap !== undefined) for (const handler of gapHandlers) tellGap(handler, gap);
          deliver(replacement.commit());
          measure.relisted();
          becomeSynced();
        },
      };
    },
    apply(event: WatchEvent<T>) {
      const object = accept(event.object);
      if (object === undefined) return false;
      const deltas = store.apply({ type: event.type, object });
      measure.event(deltas.length === 0 ? "REPEATED" : event.type);
      deliver(deltas);
      return deltas.length > 0;
    },
    heard() {
      heardAtMs = clock.now();
      if (failing) log.info("informer is back in contact", { resource: name });
      failing = false;
    },
    restarting(step, error) {
      measure.restarted(step.why);
      if (step.why === "expired")
        log.info("informer fell behind; it takes the whole state", { resource: name });
      if (error === undefined || step.why === "expired" || failing) return;
      failing = true;
      log.warn("informer lost contact; it goes on trying", { resource: name, next: step, error });
    },
  };

  function becomeSynced(): void {
    if (synced) return;
    synced = true;
    log.info("informer synced", { resource: name, objects: store.size });
    for (const resolve of syncWaiters) resolve();
    syncWaiters.clear();
  }

  async function resync(signal: AbortSignal): Promise<void> {
    if (resyncMs === undefined) return;
    while (!signal.aborted) {
      await clock.sleep(resyncMs, signal);
      let told = 0;
      for (const [key, object] of [...store.entries()]) {
        // Gone or changed since the round began: it was told already.
        if (store.get(key) === object) deliver([{ kind: "updated", key, object, old: object }]);
        if (++told % RESYNC_SLICE === 0) await clock.sleep(0, signal);
      }
    }
  }

  const reflector = createReflector(deps, { resource, ...selection }, sink);

  return {
    async run(signal) {
      // The sleeps of a resync reject on abort, which is how it ends.
      await Promise.all([reflector.run(signal), resync(signal).catch(() => undefined)]);
    },
    addHandler(handler, { changesOnly = false } = {}) {
      if (!changesOnly)
        for (const [key, object] of store.entries()) tell(handler, { kind: "added", key, object });
      handlers.add(handler);
      return () => void handlers.delete(handler);
    },
    onGap(handler) {
      gapHandlers.add(handler);
      return () => void gapHandlers.delete(handler);
    },
    get: (key) => store.get(key),
    objects: () => store.objects(),
    get size() {
      return store.size;
    },
    byIndex: (index, value) => store.byIndex(index, value),
    hasSynced: () => synced,
    whenSynced: (signal) => waitForSync(signal),
    stalenessMs: () => clock.now() - heardAtMs,
    version: () => reflector.version(),
    watchedMs: () => reflector.watchedMs(),
  };

  function waitForSync(signal?: AbortSignal): Promise<void> {
    if (synced) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        syncWaiters.delete(onSync);
        if (signal) reject(abortReason(signal));
      };
      const onSync = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      if (signal?.aborted) {
        onAbort();
        return;
      }
      signal?.addEventListener("abort", onAbort, { once: true });
      syncWaiters.add(onSync);
    });
  }
}
