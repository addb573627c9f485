import { setMaxListeners } from "node:events";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import { createInformer, type Informer } from "../kube/informer/informer.ts";
import type { KubeObject } from "../kube/object.ts";
import { OBJECT_KINDS, type ClusterObjects, type ObjectKind } from "../views/objects.ts";
import { READ_RESOURCES, readObjects, selectorOf } from "./reading.ts";

/** Changes that come together are shown together: a pod that starts touches five objects within this time. */
const SETTLE_MS_MIN = 100;

/** Everything is worked out anew for each showing; pauses this many times as long keep it below a fifth of a core. */
const REST_PER_WORK = 4;

/** Nine informers with a few requests each listen to one signal: dozens, where node warns of a leak at 11. */
const LISTENERS_MAX = 1_000;

interface LiveDeps {
  readonly client: Pick<Client, "list" | "watch">;
  readonly clock: Clock;
  readonly random: Random;
  readonly namespace: string;
  readonly kinds?: readonly ObjectKind[] | undefined;
}

/**
 * Tells `show` the objects, and again after every change, until the signal aborts. Kinds that may not be listed are
 * left out and named, as in a single reading; what was listed is then watched, so nothing polls.
 */
export async function watchObjects(
  deps: LiveDeps,
  show: (objects: ClusterObjects) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await showChanges(deps, show, signal);
  } catch (error) {
    // Ctrl-C while it still reads is an end like any other.
    if (!signal.aborted) throw error;
  }
}

async function showChanges(
  { client, clock, random, namespace, kinds }: LiveDeps,
  show: (objects: ClusterObjects) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  setMaxListeners(LISTENERS_MAX, signal);
  const first = await readObjects(client, { namespace, kinds, signal });
  const informers = new Map(
    watchable(first).map(({ kind, ...selection }) => [
      kind,
      createInformer<KubeObject>(
        { client, clock, random: random.fork(kind) },
        { resource: READ_RESOURCES[kind], ...selection },
      ),
    ]),
  );
  const running = [...informers.values()].map((informer) => informer.run(signal));
  const changes = createBell(informers.values(), signal);
  await Promise.all([...informers.values()].map((informer) => informer.whenSynced(signal)));
  while (!signal.aborted) {
    const startedMs = clock.now();
    await show({ ...first, ...snapshot(informers) });
    const tookMs = clock.now() - startedMs;
    await changes.ring();
    await clock.sleep(Math.max(SETTLE_MS_MIN, tookMs * REST_PER_WORK), signal).catch(() => undefined);
  }
  await Promise.all(running);
}

interface Watched {
  readonly kind: ObjectKind;
  /** Where only this one may be read. */
  readonly namespace: string | undefined;
  readonly fieldSelector: string | undefined;
}

function watchable({ unread, notAsked, notServed }: ClusterObjects): readonly Watched[] {
  const kinds = OBJECT_KINDS.filter((kind) => !notAsked.includes(kind) && !notServed.includes(kind));
  return kinds.flatMap((kind) => {
    const missing = unread.find((item) => item.kind === kind);
    if (missing !== undefined && missing.readNamespace === undefined) return [];
    return [{ kind, namespace: missing?.readNamespace, fieldSelector: selectorOf(kind) }];
  });
}

function snapshot(informers: ReadonlyMap<ObjectKind, Informer<KubeObject>>): Partial<ClusterObjects> {
  return Object.fromEntries([...informers].map(([kind, informer]) => [kind, [...informer.objects()]]));
}

/** Resolves at the first change since it was last asked, and at the end. */
function createBell(
  informers: Iterable<Informer<KubeObject>>,
  signal: AbortSignal,
): { ring(): Promise<void> } {
  let rung = false;
  let answer: (() => void) | undefined;
  const onChange = () => {
    rung = true;
    answer?.();
  };
  for (const informer of informers) informer.addHandler(onChange);
  signal.addEventListener("abort", onChange, { once: true });
  return {
    async ring() {
      if (!rung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
      }
      rung = false;
      answer = undefined;
    },
  };
}
