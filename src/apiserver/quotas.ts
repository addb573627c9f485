import { resourceName } from "../kube/object.ts";
import { formatQuantity } from "../kube/quantity.ts";
import { forbidden } from "./errors.ts";
import { KINDS, storedKind, type Kind } from "./kinds.ts";
import { renderObject, shortForm, type ApiObject } from "./objects.ts";
import type { VerbDeps } from "./request.ts";
import type { Amounts } from "./rules/pod-resources.ts";
import { grows, hardOf, quotaProblem, usedOf, type Counted, type Quota } from "./rules/quota-check.ts";
import { sameValue } from "./rules/quantities.ts";
import type { ObjectStore, StoredObject, StoreKey } from "./store/store.ts";

/**
 * ResourceQuota: whether a namespace has room for one more object. What is in use is counted from the objects that are
 * there, so that nobody has to keep the count right; creations that are under way count from the moment they were let
 * through, so that two at once do not share the last place. The quota's status says what was counted, as a real server
 * writes it; what a deletion sets free there is written by kube-controller-manager, or with the next creation.
 */
export interface Reservation {
  /** The object is there: the quotas' status says so. */
  settle(): Promise<void>;
  /** Whatever became of it. */
  release(): void;
}

export interface Place {
  readonly key: StoreKey;
  readonly object: ApiObject;
  /** What it takes the place of. Of an update only what it takes more counts. */
  readonly replaced?: StoredObject;
}

/** An update can take more of a quota only where a claim grows, a pod is resized or a service asks for more. */
const GROWING: readonly string[] = ["services", "persistentvolumeclaims", "pods"];

/** Throws the answer when there is no room; undefined where no quota counts the object. */
export function reserve(deps: VerbDeps, kind: Kind, place: Place): Reservation | undefined {
  const { key, object, replaced } = place;
  if (!kind.namespaced || (replaced !== undefined && !GROWING.includes(key.resource))) return undefined;
  const quotas = quotasOf(deps.store, key.namespace);
  if (quotas.length === 0) return undefined;
  const wanted = {
    resource: key.resource,
    object,
    ...(replaced === undefined ? {} : { replaced: shortForm(kind, replaced) }),
  };
  if (!grows(wanted)) return undefined;
  for (const { quota } of quotas) {
    const problem = quotaProblem(quota, wanted, presentIn(deps.store, key.namespace, quota));
    if (problem !== undefined) throw forbidden(kind, object.metadata.name, problem);
  }
  const pending = pendingOf(deps.store);
  pending.add(place);
  return {
    settle: async () => {
      // The object is stored, whatever becomes of the count: the next creation writes it again.
      for (const { stored } of quotas) await tellUsed(deps, stored.key).catch(() => undefined);
    },
    release: () => void pending.delete(place),
  };
}

/** Let through and perhaps not there yet. */
const underWay = new WeakMap<ObjectStore, Set<Place>>();

function pendingOf(store: ObjectStore): Set<Place> {
  let found = underWay.get(store);
  if (found === undefined) underWay.set(store, (found = new Set()));
  return found;
}

const quotaKind = kindOf("resourcequotas");
const QUOTAS = resourceName(quotaKind);

function quotasOf(
  store: ObjectStore,
  namespace: string,
): { readonly quota: Quota; readonly stored: StoredObject }[] {
  return Array.from(store.scan({ resource: QUOTAS, namespace }), (stored) => ({
    stored,
    quota: shortForm(quotaKind, stored),
  }));
}

/** Only of the kinds that the quota has a limit for. */
function* presentIn(store: ObjectStore, namespace: string, quota: Quota): Generator<Counted> {
  const names = [...hardOf(quota).keys()];
  for (const [resource, kind] of COUNTABLE) {
    if (!names.some((name) => counts(name, resource))) continue;
    const pending = [...pendingOf(store)].filter(
      ({ key, replaced }) =>
        key.resource === resource &&
        key.namespace === namespace &&
        store.get(key)?.revision === replaced?.revision,
    );
    const replacedNow = new Set(pending.map(({ key, replaced }) => (replaced === undefined ? "" : key.name)));
    for (const stored of store.scan({ resource, namespace }))
      if (!replacedNow.has(stored.key.name)) yield { resource, object: shortForm(kind, stored) };
    for (const { object } of pending) yield { resource, object };
  }
}

function counts(name: string, resource: string): boolean {
  if (name === `count/${resource}` || name === resource) return true;
  if (resource === "services") return name.startsWith("services.");
  if (resource === "persistentvolumeclaims")
    return name === "requests.storage" || name.includes(".storageclass.");
  return resource === "pods" && OF_PODS.test(name);
}

/** `cpu`, `limits.memory`, `requests.example.com/gpu`. */
const OF_PODS = /^((limits\.)?(cpu|memory|ephemeral-storage)|requests\.(?!storage$).*)$/;

const COUNTABLE: ReadonlyMap<string, Kind> = new Map(
  KINDS.filter(({ namespaced, storedAs }) => namespaced && storedAs === undefined).map((kind) => [
    resourceName(kind),
    kind,
  ]),
);

function kindOf(resource: string): Kind {
  const found = KINDS.find((kind) => resourceName(kind) === resource);
  if (found === undefined) throw new RangeError(`no kind is kept as ${resource}`);
  return storedKind(found);
}

const TELL_TRIES = 5;

/** Somebody who writes it at the same time counted as well, and the next creation counts again. */
async function tellUsed({ store }: VerbDeps, key: StoreKey): Promise<void> {
  for (let attempt = 0; attempt < TELL_TRIES; attempt++) {
    const stored = store.get(key);
    if (stored === undefined) return;
    const quota: ApiObject & Quota = shortForm(quotaKind, stored);
    const used = texts(usedOf(quota, presentIn(store, key.namespace, quota)));
    const status = { ...quota.status, hard: quota.spec?.hard ?? {}, used };
    if (sameValue({ capacity: used }, { capacity: quota.status?.used ?? {} })) return;
    const render = (revision: number) => renderObject(quotaKind, { ...quota, status }, revision);
    if ((await store.update(key, render, { expected: stored.revision })).kind === "committed") return;
  }
}

function texts(amounts: Amounts): Record<string, string> {
  return Object.fromEntries([...amounts].map(([name, amount]) => [name, formatQuantity(amount)]));
}
