import type { NamespaceCondition } from "kubernetes-types/core/v1.js";
import { resourceName } from "../../kube/object.ts";
import type { Outcome } from "../../kube/workqueue/controller.ts";
import { namespaces, pods, type Kind } from "../kinds.ts";
import { fieldAt, parseStored, renderObject, toTimestamp, type ApiObject } from "../objects.ts";
import { keyFor, type VerbDeps } from "../request.ts";
import type { StoredObject, StoreKey } from "../store/store.ts";
import { AGAIN, DONE, type EngineController, type Marks } from "./engine-controller.ts";
import { countRemaining, namespaceConditions, type Remaining } from "./namespace-conditions.ts";
import { finalizersOf, isDeleting } from "./lifecycle.ts";
import { STORED_KINDS } from "./served.ts";
import { changeSeen, deleteSeen, forAll } from "./writes.ts";

const PODS = resourceName(pods);
const NAMESPACED = STORED_KINDS.filter(({ namespaced }) => namespaced);
const CONTENT_FINALIZER = "kubernetes";
/**
 * While content goes, the conditions are brought up to date once a second at most: a namespace of 10,000 objects whose
 * finalizers are taken away one by one is then counted once a second and not 10,000 times.
 */
const RECOUNT_MS = 1_000;

/**
 * A namespace being deleted: everything in it is deleted, pods first, what stays for now is told in its conditions, and with
 * the last object it goes. Keys are names of namespaces.
 */
export function createNamespaceController(verbs: VerbDeps, { mark, markAfter }: Marks): EngineController {
  const { store, clock } = verbs;
  const terminating = new Set<string>();
  /** Objects by namespace and kind: with the last one the namespace is looked at at once. */
  const contents = new Map<string, Map<string, number>>();

  function observeNamespace(type: string, object: StoredObject): void {
    const { name } = object.key;
    if (type !== "deleted" && isDeleting(object)) {
      terminating.add(name);
      mark(name);
    } else {
      terminating.delete(name);
    }
  }

  /** Whether nothing is left. */
  function count(type: string, { namespace, resource }: StoreKey): boolean {
    const change = type === "deleted" ? -1 : type === "updated" ? 0 : 1;
    const counts = contents.get(namespace) ?? new Map<string, number>();
    const next = (counts.get(resource) ?? 0) + change;
    if (next > 0) counts.set(resource, next);
    else counts.delete(resource);
    if (counts.size > 0) contents.set(namespace, counts);
    else contents.delete(namespace);
    return counts.size === 0;
  }

  async function finish(
    stored: StoredObject,
    left: Remaining,
    failure: string | undefined,
  ): Promise<Outcome> {
    const namespace = parseStored(stored);
    const isEmpty = left.objects === 0 && failure === undefined;
    const others = [
      ...specFinalizers(namespace).filter((name) => name !== CONTENT_FINALIZER),
      ...finalizersOf(namespace),
    ];
    if (isEmpty && others.length === 0) return remove(stored);
    if (isEmpty && specFinalizers(namespace).includes(CONTENT_FINALIZER)) return letGo(stored);
    const now = toTimestamp(clock.wall());
    const tell = (current: ApiObject) => withConditions(current, { ...left, failure }, now);
    const result = await changeSeen(verbs, stored, tell, { subresource: "status" });
    return result === "conflict" ? AGAIN : DONE;
  }

  async function remove(stored: StoredObject): Promise<Outcome> {
    const lastWords = (revision: number) => renderObject(namespaces, parseStored(stored), revision);
    const { kind } = await store.delete(stored.key, lastWords, { expected: stored.revision });
    return kind === "conflict" ? AGAIN : DONE;
  }

  /** Others have finalizers on it: ours goes, and the change brings the namespace back here. */
  async function letGo(stored: StoredObject): Promise<Outcome> {
    const namespace = parseStored(stored);
    const finalizers = specFinalizers(namespace).filter((name) => name !== CONTENT_FINALIZER);
    const next = { ...namespace, spec: { ...(namespace["spec"] as object), finalizers } };
    const render = (revision: number) => renderObject(namespaces, next, revision);
    const { kind } = await store.update(stored.key, render, { expected: stored.revision });
    return kind === "conflict" ? AGAIN : DONE;
  }

  function isWithoutPods(namespace: string): boolean {
    return store.scan({ resource: PODS, namespace })[Symbol.iterator]().next().done === true;
  }

  /** Of the kinds that were seen in it: one to three of some thirty, mostly. */
  function seenIn(namespace: string): [Kind, StoredObject][] {
    const counts = contents.get(namespace);
    return objectsOf(namespace, (kind) => counts?.has(resourceName(kind)) === true);
  }

  function objectsOf(namespace: string, isLookedFor: (kind: Kind) => boolean): [Kind, StoredObject][] {
    return NAMESPACED.filter(isLookedFor).flatMap((kind) =>
      Array.from(store.scan({ resource: resourceName(kind), namespace }), (stored): [Kind, StoredObject] => [
        kind,
        stored,
      ]),
    );
  }

  /** That nothing is left is believed of the store alone: what came while others were deleted was not seen yet. */
  function objectsIn(namespace: string): [Kind, StoredObject][] {
    const seen = seenIn(namespace);
    return seen.length > 0 ? seen : objectsOf(namespace, () => true);
  }

  return {
    clear() {
      terminating.clear();
      contents.clear();
    },

    observe({ type, object }) {
      const { resource, namespace } = object.key;
      if (resource === "namespaces") observeNamespace(type, object);
      if (namespace === "") return;
      const isEmpty = count(type, object.key);
      if (!terminating.has(namespace)) return;
      // What was on its way when the deletion began is deleted as well; with the last pod it is everything else's turn.
      const wasLastPod = resource === PODS && type === "deleted" && isWithoutPods(namespace);
      if (isEmpty || type === "created" || wasLastPod) mark(namespace);
      else markAfter(namespace, RECOUNT_MS);
    },

    async reconcile(name): Promise<Outcome> {
      const key = keyFor(namespaces, undefined, name);
      const before = store.get(key);
      if (before === undefined || !isDeleting(before)) return DONE;
      const doomed = nextToGo(objectsIn(name).map(([, stored]) => stored));
      const error = await forAll(doomed, (stored) => deleteSeen(verbs, stored)).then(nothing, toError);
      // Meanwhile it may have gone, and another of its name have come.
      const stored = store.get(key);
      if (stored === undefined || !isDeleting(stored)) return DONE;
      const left = countRemaining(objectsIn(name).map(([kind, one]) => [kind, parseStored(one)] as const));
      const outcome = await finish(stored, left, error?.message);
      return error === undefined ? outcome : { kind: "retry", error };
    },
  };
}

/**
 * Pods go before everything else: while one still runs, its service account, its network policy and whatever else
 * keeps it in bounds stay.
 */
function nextToGo(content: readonly StoredObject[]): StoredObject[] {
  const running = content.filter(({ key }) => key.resource === PODS);
  return (running.length > 0 ? running : content).filter((stored) => !isDeleting(stored));
}

function specFinalizers(namespace: ApiObject): readonly string[] {
  const finalizers = fieldAt(namespace, "spec", "finalizers");
  return Array.isArray(finalizers) ? (finalizers as readonly string[]) : [];
}

function withConditions(
  namespace: ApiObject,
  left: Remaining & { readonly failure: string | undefined },
  now: string,
): ApiObject {
  const status = (namespace["status"] ?? {}) as { readonly conditions?: readonly NamespaceCondition[] };
  return {
    ...namespace,
    status: { ...status, conditions: namespaceConditions(status.conditions ?? [], left, now) },
  };
}

function nothing(): undefined {
  return undefined;
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
