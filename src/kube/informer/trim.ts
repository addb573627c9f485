import type { KubeObject } from "../object.ts";

/** Takes away what nobody reads before an object is kept. Must keep metadata.{name, namespace, uid, resourceVersion}. */
export type Trim<T> = (object: T) => T;

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * The least any cache should do: `managedFields` and kubectl's copy of the whole object are often more than
 * half of it, and no controller reads them. Never send a trimmed object back with PUT.
 */
export function trimBookkeeping<T extends KubeObject>(object: T): T {
  const { managedFields: _, annotations, ...metadata } = object.metadata;
  if (annotations === undefined) return { ...object, metadata };
  if (!Object.hasOwn(annotations, LAST_APPLIED)) return { ...object, metadata: { ...metadata, annotations } };
  const { [LAST_APPLIED]: __, ...kept } = annotations;
  return { ...object, metadata: { ...metadata, annotations: kept } };
}
