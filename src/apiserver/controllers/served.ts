import { apiVersionOf, resourceName } from "../../kube/object.ts";
import { KINDS, type Kind } from "../kinds.ts";
import type { StoreKey } from "../store/store.ts";

/** Every kind that the store holds objects of; events, which are served twice, are kept once. */
export const STORED_KINDS: readonly Kind[] = KINDS.filter(({ storedAs }) => storedAs === undefined);

const byResource = new Map(STORED_KINDS.map((kind) => [resourceName(kind), kind]));
const byType = new Map(KINDS.map((kind) => [`${apiVersionOf(kind)} ${kind.kind}`, kind]));

export function kindOf(resource: string): Kind {
  const kind = byResource.get(resource);
  if (kind === undefined) throw new RangeError(`store: nothing is kept as ${resource}`);
  return kind;
}

/** Undefined for what this server does not serve: `apps/v1 ReplicaSet`. */
export function findType(apiVersion: string, kind: string): Kind | undefined {
  return byType.get(`${apiVersion} ${kind}`);
}

/** A key of the store as a key of a queue. None of its parts can have a slash in it. */
export function toText({ resource, namespace, name }: StoreKey): string {
  return `${resource}/${namespace}/${name}`;
}

export function fromText(text: string): StoreKey {
  const [resource = "", namespace = "", name = ""] = text.split("/");
  return { resource, namespace, name };
}
