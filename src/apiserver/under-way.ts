import { resourceName } from "../kube/object.ts";
import type { Kind } from "./kinds.ts";
import { services } from "./kinds-workloads.ts";
import type { ApiObject } from "./objects.ts";
import type { ObjectStore } from "./store/store.ts";

/**
 * Services that were let through and are perhaps not stored yet. What they were given is theirs from that moment: two
 * that come at once never get one address or one node port, though neither finds the other in the store. Between
 * admission and this there is no await, so nobody comes in between.
 */
const underWay = new WeakMap<ObjectStore, Set<ApiObject>>();

const SERVICES = resourceName(services);

/** Returns what ends it, whatever became of the write. */
export function holdAllocated(store: ObjectStore, kind: Kind, object: ApiObject): () => void {
  if (resourceName(kind) !== SERVICES) return nothing;
  let held = underWay.get(store);
  if (held === undefined) underWay.set(store, (held = new Set()));
  held.add(object);
  return () => void held.delete(object);
}

/** Of other kinds nothing is given out that must be one of a kind. */
export function objectsUnderWay(store: ObjectStore, resource: string, namespace?: string): ApiObject[] {
  if (resource !== SERVICES) return [];
  return [...(underWay.get(store) ?? [])].filter(
    ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
  );
}

function nothing(): void {
  // A kind that is given nothing holds nothing.
}
