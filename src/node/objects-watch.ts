import { abortable, type Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import { KubeError } from "../kube/errors.ts";
import { createInformer } from "../kube/informer/informer.ts";
import { resourceName, toKey, type KubeObject, type ObjectRef, type Resource } from "../kube/object.ts";

/**
 * Single objects, each followed while somebody needs it: the claims, volumes, attachments, secrets and config maps that
 * pods of this node name, and no others. Rights and memory then follow what runs here, not what the cluster has.
 *
 * Bound: one watch an object that a pod of this node refers to.
 */
export interface ObjectWatches {
  /** Follows from now on; what `release` was called for as often as `follow` is forgotten. */
  follow(resource: Resource, ref: ObjectRef): () => void;
  /** What is known now; `loading` for what nobody follows. */
  see<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef): Seen<T>;
  /** From the cache where it is followed and has come, else from the server. Rejects with its KubeError. */
  read<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, signal: AbortSignal): Promise<T>;
  run(signal: AbortSignal): Promise<void>;
}

export type Seen<T> =
  | { readonly kind: "loading" }
  | { readonly kind: "present"; readonly object: T }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly error: Error };

export interface ObjectWatchDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export type ObjectChanged = (resource: Resource, ref: ObjectRef) => void;

interface Followed {
  readonly stop: AbortController;
  followers: number;
  seen: Seen<KubeObject>;
  /** Ends with the first answer, whatever it is. */
  readonly first: Promise<void>;
}

const LOADING = { kind: "loading" } as const;

export function createObjectWatches(deps: ObjectWatchDeps, onChange: ObjectChanged): ObjectWatches {
  const { client } = deps;
  const followed = new Map<string, Followed>();
  const running = new Set<Promise<void>>();
  const over = new AbortController();

  function start(resource: Resource, ref: ObjectRef): Followed {
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, over.signal]);
    let answered = () => {};
    const first = new Promise<void>((resolve) => (answered = resolve));
    const entry: Followed = { stop, followers: 0, seen: LOADING, first };
    const set = (seen: Seen<KubeObject>) => {
      const before = entry.seen;
      entry.seen = seen;
      answered();
      if (!signal.aborted && differs(before, seen)) onChange(resource, ref);
    };
    const work = follow(deps, { resource, ref, set }, signal).finally(() => running.delete(work));
    running.add(work);
    return entry;
  }

  return {
    follow(resource, ref) {
      const key = keyFor(resource, ref);
      const entry = followed.get(key) ?? start(resource, ref);
      followed.set(key, entry);
      entry.followers++;
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
      return client.get(resource, ref, { signal });
    },
    async run(signal) {
      const stop = () => over.abort(signal.reason);
      if (signal.aborted) stop();
      else
        await new Promise<void>((resolve) =>
          signal.addEventListener("abort", () => resolve(), { once: true }),
        );
      stop();
      await Promise.all(running);
    },
  };
}

/** One GET for the first answer and the server's own words on a failure, then a watch of that one object. */
async function follow(
  deps: ObjectWatchDeps,
  { resource, ref, set }: { resource: Resource; ref: ObjectRef; set: (seen: Seen<KubeObject>) => void },
  signal: AbortSignal,
): Promise<void> {
  try {
    set({ kind: "present", object: await deps.client.get(resource, ref, { signal }) });
  } catch (error) {
    if (signal.aborted) return;
    set(isAbsent(error) ? { kind: "absent" } : { kind: "failed", error: error as Error });
  }
  const informer = createInformer<KubeObject>(deps, {
    resource,
    namespace: ref.namespace,
    fieldSelector: `metadata.name=${ref.name}`,
  });
  informer.addHandler(({ kind, object }) =>
    set(kind === "deleted" ? { kind: "absent" } : { kind: "present", object }),
  );
  void informer.whenSynced(signal).then(
    () => informer.size === 0 && set({ kind: "absent" }),
    () => undefined,
  );
  await informer.run(signal);
}

function isAbsent(error: unknown): boolean {
  return error instanceof KubeError && error.code === "NotFound";
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
