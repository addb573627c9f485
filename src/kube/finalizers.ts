import type { JsonPatchOperation } from "./client/client.ts";
import type { KubeObject } from "./object.ts";

/**
 * Finalizers are shared: several controllers keep theirs in one list. A merge patch writes the whole list as we
 * last saw it and silently drops what another added meanwhile. These JSON patches first test what they were
 * computed from, so that a concurrent change makes the server refuse them (`Invalid`): read again, decide again.
 *
 * They also test the uid: an object deleted and created anew under the same name is not the one we meant.
 */
export function hasFinalizer(object: KubeObject, name: string): boolean {
  return finalizersOf(object).includes(name);
}

/** The others, in their order. */
export function finalizersWithout(object: KubeObject, name: string): readonly string[] {
  return finalizersOf(object).filter((finalizer) => finalizer !== name);
}

/** Appends the finalizer; undefined if it is there already. */
export function addFinalizerPatch(
  object: KubeObject,
  name: string,
): readonly JsonPatchOperation[] | undefined {
  const current = finalizersOf(object);
  if (current.includes(name)) return undefined;
  if (current.length === 0) {
    // `test` for null passes where the list is missing; the server stores no empty list.
    return [
      ...sameObject(object),
      { op: "test", path: LIST, value: null },
      { op: "add", path: LIST, value: [name] },
    ];
  }
  return [
    ...sameObject(object),
    { op: "test", path: LIST, value: current },
    { op: "add", path: `${LIST}/-`, value: name },
  ];
}

/**
 * Takes the finalizer away; undefined if it is not there. Only its own place is tested, so that others may
 * come and go behind it while we wait.
 */
export function removeFinalizerPatch(
  object: KubeObject,
  name: string,
): readonly JsonPatchOperation[] | undefined {
  const places = finalizersOf(object).flatMap((finalizer, index) => (finalizer === name ? [index] : []));
  if (places.length === 0) return undefined;
  const removals = places.reverse().flatMap((index): JsonPatchOperation[] => [
    { op: "test", path: `${LIST}/${index}`, value: name },
    { op: "remove", path: `${LIST}/${index}` },
  ]);
  return [...sameObject(object), ...removals];
}

const LIST = "/metadata/finalizers";

function finalizersOf({ metadata }: KubeObject): readonly string[] {
  return metadata.finalizers ?? [];
}

function sameObject({ metadata }: KubeObject): readonly JsonPatchOperation[] {
  return metadata.uid === undefined ? [] : [{ op: "test", path: "/metadata/uid", value: metadata.uid }];
}
