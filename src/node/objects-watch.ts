import { abortable, type Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { noMetrics, type Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import { KubeError } from "../kube/errors.ts";
import { resourceName, toKey, type KubeObject, type ObjectRef, type Resource } from "../kube/object.ts";
import { followObject, rememberRefusal, type Seen } from "./objects-follow.ts";
import { createTurns } from "./objects-turns.ts";

export type { Seen } from "./objects-follow.ts";

/**
 * Single objects, each followed while somebody needs it: the claims, volumes, attachments, secrets and config maps that
 * pods of this node name, and no others. Rights and memory then follow what runs here, not what the cluster has.
 *
 * Bound: one watch an object that a pod of this node refers to; `ASKING_MAX` of them being opened at a time.
 */
export interface ObjectWatches {
  /** Follows from now on; what `release` was called for as often as `follow` is forgotten. */
  follow(resource: Resource, ref: ObjectRef, options?: FollowOptions): () => void;
  /** What is known now; `loading` for what nobody follows. */
  see<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Seen<T>;
  /** From the cache where it is followed and has come, else from the server. Rejects with its KubeError. */
  read<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T>;
  /** From the server, whatever is known. */
  readNow<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T>;
  run(signal: AbortSignal): Promise<void>;
}

export interface FollowOptions {
  /** A pod waits for it: it is asked for before everything that is only looked over. */
  readonly urgent?: boolean;
}

export interface ObjectWatchDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
}

export type ObjectChanged = (resource: Resource, ref: ObjectRef) => void;

interface Followed {
  readonly key: string;
  readonly stop: AbortController;
  followers: number;
  urgent: boolean;
  seen: Seen<KubeObject>;
  /** Ends with the first answer, whatever it is, or when the object is not followed any more. */
  readonly first: Promise<void>;
}

/** Watches being opened at a time: what is urgent waits for so many answers at most. */
const ASKING_MAX = 16;

const LOADING = { kind: "loading" } as const;

export function createObjectWatches(deps: ObjectWatchDeps, onChange: ObjectChanged): ObjectWatches {
  const { log, metrics = noMetrics } = deps;
  const client = rememberRefusal(deps.client);
  const followed = new Map<string, Followed>();
  const running = new Set<Promise<void>>();
  const turns = createTurns<Followed>({ max: ASKING_MAX });
  const restarts = measure(metrics, followed);
  let over: AbortSignal | undefined;

  /** The reflector of one object, waiting for its turn before each request. */
  function inTurn(entry: Followed): Pick<Client, "list" | "watch"> {
    const ask = async <T>(given: AbortSignal | undefined, request: () => Promise<T>): Promise<T> => {
      const { urgent, stop } = entry;
      const leave = await turns.enter(entry, { urgent, signal: given ?? stop.signal });
      return request().finally(leave);
    };
    return {
      list: (resource, options = {}) => ask(options.signal, () => client.list(resource, options)),
      watch: (resource, options) => ask(options.signal, () => client.watch(resource, options)),
    };
  }

  function start(resource: Resource, ref: ObjectRef): Followed {
    let answered = () => {};
    const first = new Promise<void>((resolve) => (answered = resolve));
    const stop = new AbortController();
    // Whoever waits to read it has no deadline, and reads it from the server then.
    stop.signal.addEventListener("abort", () => answered(), { once: true });
    if (over) stop.abort(over.reason);
    const key = keyFor(resource, ref);
    const entry: Followed = { key, stop, followers: 0, urgent: false, seen: LOADING, first };
    const set = (seen: Seen<KubeObject>) => {
      const before = entry.seen;
      if (seen.kind === "failed" && differs(before, seen))
        log.warn("cannot read an object; it goes on trying", { object: key, error: seen.error });
      entry.seen = seen;
      entry.urgent = false;
      answered();
      if (!stop.signal.aborted && differs(before, seen)) onChange(resource, ref);
    };
    const following = { resource, ref, set, onRestart: (why: string) => restarts(resource, why) };
    const work = followObject({ ...deps, client: inTurn(entry) }, following, stop.signal).finally(() =>
      running.delete(work),
    );
    running.add(work);
    return entry;
  }

  function hasten(entry: Followed): void {
    if (entry.urgent || entry.seen.kind === "present") return;
    entry.urgent = true;
    turns.promote(entry);
  }

  return {
    follow(resource, ref, { urgent = false } = {}) {
      const key = keyFor(resource, ref);
      const entry = followed.get(key) ?? start(resource, ref);
      followed.set(key, entry);
      entry.followers++;
      if (urgent) hasten(entry);
      let released = false;
      return () => {
        if (released) return;
        released = true;
        if (--entry.followers > 0) return;
        followed.delete(key);
        entry.stop.abort(new Error(`nobody needs ${key} any more`));
      };
    },
    see: <T extends KubeObject>(resource: Resource<T>, ref: ObjectRef) =>
      (followed.get(keyFor(resource, ref))?.seen ?? LOADING) as Seen<T>,
    async read<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, signal: AbortSignal) {
      const entry = followed.get(keyFor(resource, ref));
      if (entry) await abortable(entry.first, signal);
      const seen = (entry?.seen ?? LOADING) as Seen<T>;
      if (seen.kind === "present") return seen.object;
      if (seen.kind === "absent") throw notFound(resource, ref);
      return deps.client.get(resource, ref, { signal });
    },
    readNow: (resource, ref, signal) => deps.client.get(resource, ref, { signal }),
    async run(signal) {
      if (!signal.aborted)
        await new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => resolve(), { once: true }),
        );
      over = signal;
      for (const { stop } of followed.values()) stop.abort(signal.reason);
      await Promise.all(running);
    },
  };
}

/** Restarts as informers count them; how many objects there are is one figure for all kinds. */
function measure(metrics: Metrics, followed: ReadonlyMap<string, Followed>) {
  const restarts = metrics.counter({
    name: "mooring_informer_restarts_total",
    help: "Times a watch or list was started again, by what ended the one before.",
    labels: ["resource", "why"],
  });
  metrics.gauge({
    name: "mooring_node_objects",
    help: "Single objects followed for pods of this node, by what is known of them.",
    labels: ["state"],
    collect(gauge) {
      const counts = { loading: 0, present: 0, absent: 0, failed: 0 };
      for (const { seen } of followed.values()) counts[seen.kind]++;
      for (const [state, count] of Object.entries(counts)) gauge.set(count, { state });
    },
  });
  return (resource: Resource, why: string) => restarts.inc({ resource: resourceName(resource), why });
}

function differs(one: Seen<KubeObject>, other: Seen<KubeObject>): boolean {
  if (one.kind !== other.kind) return true;
  if (one.kind === "present" && other.kind === "present") {
    const [a, b] = [one.object.metadata, other.object.metadata];
    return a.resourceVersion !== b.resourceVersion || a.uid !== b.uid;
  }
  return one.kind === "failed" && other.kind === "failed" && one.error.message !== other.error.message;
}

function notFound(resource: Resource, ref: ObjectRef): KubeError {
  return new KubeError("NotFound", `${resourceName(resource)} "${ref.name}" not found`, { status: 404 });
}

function keyFor(resource: Resource, ref: ObjectRef): string {
  return `${resourceName(resource)} ${toKey(ref)}`;
}
