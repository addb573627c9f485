import type { Clock } from "../base/clock.ts";
import type { Kind } from "./kinds.ts";
import type { ApiObject } from "./objects.ts";
import type { VerbDeps } from "./request.ts";
import { accountNameOf } from "./rules/admission-service-account.ts";
import type { ObjectStore, StoreKey } from "./store/store.ts";

/**
 * What must be there before an object can be created, and is about to be: a client sends a namespace and a pod in one
 * breath, and the account the pod runs as is made by a controller a commit later. Admission of the real server gives
 * both a moment before it refuses, so no client that works there has a retry of its own.
 *
 * The real server sleeps and looks again; this one is woken by the write, so nobody waits longer than it takes. What
 * is missing when the time is up is refused by the checks of `rules/`, in their words.
 */
export async function awaitPrerequisites(
  { store, clock }: VerbDeps,
  kind: Kind,
  { namespace, object }: { readonly namespace: string | undefined; readonly object: ApiObject },
): Promise<void> {
  if (namespace === undefined) return;
  const home = { resource: "namespaces", namespace: "", name: namespace };
  if (!(await appears({ store, clock }, home, NAMESPACE_WAIT_MS)) || kind.kind !== "Pod") return;
  // A controller makes this account and no other: the lack of any other is for good.
  if (accountNameOf(object) !== "default" || isTerminating(store, home)) return;
  const account = { resource: "serviceaccounts", namespace, name: "default" };
  await appears({ store, clock }, account, ACCOUNT_WAIT_MS);
}

/** Of NamespaceLifecycle, for whoever sends both at once and has the second arrive first. */
export const NAMESPACE_WAIT_MS = 50;
/** Of ServiceAccount, which looks ten times, 100 to 200 ms apart: 1.8 s at most. */
export const ACCOUNT_WAIT_MS = 1_800;

function isTerminating(store: ObjectStore, key: StoreKey): boolean {
  return store.get(key)?.text.includes('"deletionTimestamp":') === true;
}

/** Whether the object is there, by `waitMs` from now. */
function appears(
  { store, clock }: { readonly store: ObjectStore; readonly clock: Clock },
  key: StoreKey,
  waitMs: number,
): Promise<boolean> {
  if (store.get(key) !== undefined) return Promise.resolve(true);
  return new Promise((resolve) => {
    const { resource, namespace } = key;
    const watch = store.watch({ resource, namespace, afterRevision: store.revision }, look);
    const timer = clock.after(waitMs, () => end(false));

    function look(): void {
      // Taken, so that a namespace in which much is written does not fill the queue of a watch that only waits.
      while (watch.take() !== undefined);
      if (store.get(key) !== undefined) end(true);
      else if (watch.state !== "open") end(false);
    }

    function end(isThere: boolean): void {
      timer.cancel();
      watch.close();
      resolve(isThere);
    }

    // A watch tells of writes from the first time it was asked and had none.
    look();
  });
}
