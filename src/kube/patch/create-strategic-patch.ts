import { KubeError } from "../errors.ts";
import {
  checkDepth,
  describeJson,
  entriesOf,
  isJsonList,
  isJsonObject,
  jsonEqual,
  memberOf,
  type Json,
  type JsonObject,
} from "./json.ts";
import type { PatchSchema } from "./patch-schema.ts";
import { DELETE_FROM_LIST, PATCH_DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER } from "./strategic-patch.ts";

/**
 * The strategic merge patch that turns `before` into `after`, or undefined if there is nothing to do. It
 * names only what differs, so a concurrent change elsewhere in the object, or to another element of a
 * merged list, survives it.
 *
 * It cannot say everything: a null in `after` counts as absent, and a set has no item twice. A merged list
 * in which two elements share a key (a dual-stack node has two addresses of type InternalIP) is sent whole, with
 * `$patch: replace`, as the kubelet does: pairing by key would lose one of them.
 */
export function createStrategicPatch(
  before: unknown,
  after: unknown,
  schema: PatchSchema,
): JsonObject | undefined {
  checkDepth(before, "the object before");
  checkDepth(after, "the object after");
  if (!isJsonObject(before) || !isJsonObject(after)) {
    throw new KubeError(
      "BadInput",
      `a strategic merge patch is made between two objects, not ${describeJson(before)} and ${describeJson(after)}`,
    );
  }
  const patch = diffObjects(before, after, schema);
  return patch.size === 0 ? undefined : Object.fromEntries(patch);
}

type Members = Map<string, Json>;

function diffObjects(before: JsonObject, after: JsonObject, schema: PatchSchema | undefined): Members {
  const patch: Members = new Map();
  for (const [key, value] of entriesOf(after)) {
    if (value === null) continue;
    const changes = diffField(key, memberOf(before, key), value, schema?.field(key));
    for (const [name, change] of changes) patch.set(name, change);
  }
  for (const [key, old] of entriesOf(before)) {
    const value = memberOf(after, key);
    if (value === undefined || (value === null && old !== null)) patch.set(key, null);
  }
  return patch;
}

/** The members a field takes in the patch: none, or itself and, for merged lists, its directives. */
function diffField(
  key: string,
  before: Json | undefined,
  after: Json,
  schema: PatchSchema | undefined,
): Members {
  if (isJsonObject(before) && isJsonObject(after) && schema?.strategy !== "replace") {
    const changes = withRetainKeys(diffObjects(before, after, schema), after, schema);
    return new Map(changes.size === 0 ? [] : [[key, Object.fromEntries(changes)]]);
  }
  if (jsonEqual(before, after)) return new Map();
  if (!isJsonList(before) || !isJsonList(after) || schema?.strategy !== "merge" || before.length === 0) {
    return new Map([[key, after]]);
  }
  return schema.mergeKey === undefined
    ? diffSets(key, before, after)
    : diffKeyedLists(key, before, after, { schema, mergeKey: schema.mergeKey });
}

function withRetainKeys(changes: Members, after: JsonObject, schema: PatchSchema | undefined): Members {
  if (schema?.retainKeys !== true || changes.size === 0) return changes;
  const keys = entriesOf(after)
    .filter(([, value]) => value !== null)
    .map(([key]) => key);
  return changes.set(RETAIN_KEYS, keys.sort());
}

function diffSets(key: string, before: readonly Json[], after: readonly Json[]): Members {
  const [old, wanted] = [new Set(before), new Set(after)];
  // Merging removes duplicates only from a list it has something to add to.
  const additions = old.size < before.length ? after : after.filter((item) => !old.has(item));
  return listMembers(key, additions, {
    deletions: before.filter((item) => !wanted.has(item)),
    order: after,
  });
}

function diffKeyedLists(
  key: string,
  before: readonly Json[],
  after: readonly Json[],
  { schema, mergeKey }: { readonly schema: PatchSchema; readonly mergeKey: string },
): Members {
  const [old, wanted] = [byKey(before, mergeKey), byKey(after, mergeKey)];
  if (old === undefined || wanted === undefined)
    return new Map([[key, [{ [PATCH_DIRECTIVE]: "replace" }, ...after]]]);

  const changes: Json[] = [];
  for (const [identity, element] of wanted) {
    const previous = old.get(identity);
    if (previous === undefined) {
      changes.push(element);
      continue;
    }
    const change = withRetainKeys(diffObjects(previous, element, schema), element, schema);
    if (change.size > 0) changes.push(Object.fromEntries(change.set(mergeKey, identity)));
  }
  for (const identity of old.keys()) {
    if (!wanted.has(identity)) changes.push({ [PATCH_DIRECTIVE]: "delete", [mergeKey]: identity });
  }
  // Elements that differ only in nulls are equal after all.
  if (changes.length === 0 && jsonEqual([...old.keys()], [...wanted.keys()])) return new Map();
  return listMembers(key, changes, {
    deletions: [],
    order: [...wanted.keys()].map((identity) => ({ [mergeKey]: identity })),
  });
}

/** Elements by merge key; undefined if they cannot be told apart by it. */
function byKey(list: readonly Json[], mergeKey: string): Map<Json, JsonObject> | undefined {
  const elements = new Map<Json, JsonObject>();
  for (const element of list) {
    const identity = isJsonObject(element) ? memberOf(element, mergeKey) : undefined;
    if (identity === undefined || identity === null || elements.has(identity)) return undefined;
    elements.set(identity, element as JsonObject);
  }
  return elements;
}

function listMembers(
  key: string,
  changes: readonly Json[],
  { deletions, order }: { readonly deletions: readonly Json[]; readonly order: readonly Json[] },
): Members {
  const members: Members = new Map();
  if (order.length > 0) members.set(`${SET_ELEMENT_ORDER}${key}`, order);
  if (deletions.length > 0) members.set(`${DELETE_FROM_LIST}${key}`, deletions);
  if (changes.length > 0) members.set(key, changes);
  return members;
}
