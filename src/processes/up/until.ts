import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Client } from "../../kube/client/client.ts";
import { createInformer, type Informer } from "../../kube/informer/informer.ts";
import type { KubeObject, Resource } from "../../kube/object.ts";

export interface UntilDeps {
  readonly client: Pick<Client, "list" | "watch">;
  readonly clock: Clock;
  readonly random: Random;
}

export interface Wanted<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly name: string;
  readonly namespace?: string;
}

/** Resolves with the object as soon as it is as wanted; rejects when the signal aborts first. */
export function untilObject<T extends KubeObject>(
  deps: UntilDeps,
  wanted: Wanted<T> & { readonly is: (object: T) => boolean },
  signal: AbortSignal,
): Promise<T> {
  return follow(deps, wanted, signal, (informer, found) => {
    informer.addHandler(({ kind, object }) => {
      if (kind !== "deleted" && wanted.is(object)) found(object);
    });
  });
}

/** Resolves as soon as there is no such object. */
export function untilGone<T extends KubeObject>(
  deps: UntilDeps,
  wanted: Wanted<T>,
  signal: AbortSignal,
): Promise<undefined> {
  return follow<T, undefined>(deps, wanted, signal, (informer, found) => {
    informer.addHandler(({ kind }) => {
      if (kind === "deleted") found(undefined);
    });
    void informer.whenSynced(signal).then(
      () => informer.size === 0 && found(undefined),
      () => undefined,
    );
  });
}

async function follow<T extends KubeObject, R>(
  { client, clock, random }: UntilDeps,
  { resource, name, namespace }: Wanted<T>,
  signal: AbortSignal,
  listen: (informer: Informer<T>, found: (result: R) => void) => void,
): Promise<R> {
  signal.throwIfAborted();
  const over = new AbortController();
  const informer = createInformer<T>(
    { client, clock, random: random.fork(`until ${name}`) },
    { resource, namespace, fieldSelector: `metadata.name=${name}` },
  );
  const result = new Promise<R>((resolve, reject) => {
    listen(informer, resolve);
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  const running = informer.run(over.signal);
  try {
    return await result;
  } finally {
    over.abort(new Error("found"));
    await running;
  }
}

/** Between looks while the process starts, of which there are a few. */
const LOOK_MS = 10;

/** For parts that can be asked whether they are ready, at a start, but do not tell. */
export async function whenTrue(
  { clock }: Pick<UntilDeps, "clock">,
  isReady: () => boolean,
  signal: AbortSignal,
): Promise<void> {
  while (!isReady()) await clock.sleep(LOOK_MS, signal);
}
