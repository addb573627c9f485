import type { ObjectMeta } from "kubernetes-types/meta/v1.js";

/** What every object has. Fields we do not know are kept: objects are raw JSON, never classes. */
export interface KubeObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** A kind as the API serves it; `T` is what its objects look like to us. */
export interface Resource<T extends KubeObject = KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Only there so that the compiler carries `T`; never set. */
  readonly objectType?: T;
}

export interface ObjectRef {
  readonly name: string;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string | undefined;
}

/** `namespace/name`, or `name` alone where there is no namespace: the key of caches and queues. */
export type ObjectKey = string & { readonly __brand: "ObjectKey" };

export function toKey({ name, namespace }: ObjectRef): ObjectKey {
  return (namespace ? `${namespace}/${name}` : name) as ObjectKey;
}

export function keyOf(object: KubeObject): ObjectKey {
  return toKey({ name: object.metadata.name ?? "", namespace: object.metadata.namespace });
}

export function apiVersionOf({ group, version }: Resource): string {
  return group === "" ? version : `${group}/${version}`;
}

/** `pods`, `volumeattachments.storage.k8s.io`: how errors and flags name a resource. */
export function resourceName({ group, plural }: Resource): string {
  return group === "" ? plural : `${plural}.${group}`;
}

/** The collection's path; one namespace of it, or all where `namespace` is absent. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const prefix = resource.group === "" ? "/api" : `/apis/${resource.group}`;
  const inNamespace = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${prefix}/${resource.version}${inNamespace}/${resource.plural}`;
}

export function objectPath(resource: Resource, { name, namespace }: ObjectRef, subresource?: string): string {
  const path = `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/**
 * Order of two resourceVersions. They are decimal numbers of any length (a promise of the API since
 * 1.35, true of every server before): longer is larger, equal lengths compare as text. Undefined when
 * either is something else; then only equality means anything.
 */
export function compareVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

const DECIMAL = /^(0|[1-9][0-9]*)$/;
