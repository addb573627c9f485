import { KubeError } from "../errors.ts";
import { orderMerged } from "./element-order.ts";
import {
  checkDepth,
  describeJson,
  entriesOf,
  isJsonList,
  isJsonObject,
  jsonEqual,
  memberOf,
  withMembers,
  type Json,
  type JsonObject,
} from "./json.ts";
import type { PatchSchema } from "./patch-schema.ts";

export const PATCH_DIRECTIVE = "$patch";
export const RETAIN_KEYS = "$retainKeys";
export const SET_ELEMENT_ORDER = "$setElementOrder/";
export const DELETE_FROM_LIST = "$deleteFromPrimitiveList/";

/**
 * Strategic merge patch: patch and document are walked together along the schema. Objects merge, null
 * takes a key away, lists merge by key or as sets where the schema says so and are replaced elsewhere;
 * keys that begin with `$` direct the merge and never reach the document.
 *
 * Unlike the real server we take directives out of everything a patch adds (the real one leaves
 * `$setElementOrder/env` inside a new container, to be dropped as an unknown field), and nulls too.
 * A `$patch` with a value nobody knows is data; validation is there to refuse it.
 *
 * A patch that changes nothing returns the very same object.
 */
export function applyStrategicPatch(document: unknown, patch: unknown, schema: PatchSchema): JsonObject {
  checkDepth(document, "the document to patch");
  checkDepth(patch, "the strategic merge patch");
  if (!isJsonObject(patch)) {
    throw badRequest(
      "",
      `error decoding patch: a strategic merge patch is an object, not ${describeJson(patch)}`,
    );
  }
  return mergeObject(isJsonObject(document) ? document : {}, patch, schema, "");
}

function mergeObject(
  original: JsonObject,
  patch: JsonObject,
  schema: PatchSchema | undefined,
  path: string,
): JsonObject {
  const directive = directiveOf(patch);
  if (directive !== undefined) {
    const whole = directive === "replace" ? plainObject(patch) : {};
    return jsonEqual(original, whole) ? original : whole;
  }
  const changes = droppedKeys(original, patch, path);
  for (const [name, fieldPatch] of fieldPatches(patch, path)) {
    const before = changes.has(name) ? undefined : memberOf(original, name);
    const after = patchField(before, fieldPatch, schema?.field(name), path === "" ? name : `${path}.${name}`);
    if (after !== before) changes.set(name, after);
  }
  return changes.size === 0 ? original : withMembers(original, changes);
}

/** What `$retainKeys` takes away: every key it does not list. A patch may not set what it does not retain. */
function droppedKeys(original: JsonObject, patch: JsonObject, path: string): Map<string, Json | undefined> {
  const retain = memberOf(patch, RETAIN_KEYS);
  if (retain === undefined) return new Map();
  const retained = new Set<Json>(listDirective(retain, RETAIN_KEYS, path));
  for (const [key, value] of entriesOf(patch)) {
    if (value !== null && !isDirective(key) && !retained.has(key)) {
      throw badRequest(path, `the patch sets "${key}", which its ${RETAIN_KEYS} does not list`);
    }
  }
  return new Map(
    entriesOf(original)
      .filter(([key]) => !retained.has(key))
      .map(([key]) => [key, undefined]),
  );
}

/** All that a patch says about one field; the value and its two parallel lists travel as separate keys. */
interface FieldPatch {
  value?: Json;
  order?: readonly Json[];
  deletions?: readonly Json[];
}

function fieldPatches(patch: JsonObject, path: string): Map<string, FieldPatch> {
  const fields = new Map<string, FieldPatch>();
  const field = (name: string): FieldPatch => {
    const known = fields.get(name) ?? {};
    fields.set(name, known);
    return known;
  };
  for (const [key, value] of entriesOf(patch)) {
    if (key.startsWith(SET_ELEMENT_ORDER)) {
      field(key.slice(SET_ELEMENT_ORDER.length)).order = listDirective(value, key, path);
    } else if (key.startsWith(DELETE_FROM_LIST)) {
      field(key.slice(DELETE_FROM_LIST.length)).deletions = listDirective(value, key, path);
    } else if (key !== RETAIN_KEYS) {
      field(key).value = value;
    }
  }
  return fields;
}

function patchField(
  original: Json | undefined,
  { value, order, deletions }: FieldPatch,
  schema: PatchSchema | undefined,
  path: string,
): Json | undefined {
  let result = value === undefined ? original : patchValue(original, value, schema, path);
  if (order !== undefined && schema?.strategy === "merge" && isJsonList(result)) {
    if (isJsonList(value)) checkOrder(value, order, schema.mergeKey, path);
    const before = isJsonList(original) ? original : [];
    result = sameOr(original, orderMerged(result, order, before, schema.mergeKey));
  }
  if (deletions !== undefined && isJsonList(result)) {
    const gone = new Set(deletions);
    result = sameOr(
      result,
      result.filter((item) => !gone.has(item)),
    );
  }
  return result;
}

function patchValue(
  original: Json | undefined,
  value: Json,
  schema: PatchSchema | undefined,
  path: string,
): Json | undefined {
  if (isJsonObject(value) && isJsonObject(original) && schema?.strategy !== "replace") {
    return mergeObject(original, value, schema, path);
  }
  if (isJsonList(value) && schema?.strategy === "merge") {
    return mergeList(isJsonList(original) ? original : undefined, value, schema, path);
  }
  const plain = plainValue(value);
  return jsonEqual(original, plain) ? original : plain;
}

function mergeList(
  original: readonly Json[] | undefined,
  patch: readonly Json[],
  schema: PatchSchema,
  path: string,
): readonly Json[] {
  const all = [...(original ?? []), ...patch];
  if (!all.some(isJsonObject)) {
    if (all.some(isJsonList)) throw invalid(path, "lists of lists cannot be merged");
    return sameOr(original, orderMerged([...new Set(all)], patch, original ?? [], undefined));
  }
  if (!all.every(isJsonObject))
    throw invalid(path, "the list has objects and other values, which cannot be merged");
  if (schema.mergeKey === undefined)
    throw invalid(path, "objects in a list without a merge key cannot be merged");
  return mergeKeyedList(original as readonly JsonObject[] | undefined, patch as readonly JsonObject[], {
    schema,
    mergeKey: schema.mergeKey,
    path,
  });
}

interface KeyedList {
  readonly schema: PatchSchema;
  readonly mergeKey: string;
  readonly path: string;
}

function mergeKeyedList(
  original: readonly JsonObject[] | undefined,
  patch: readonly JsonObject[],
  { schema, mergeKey, path }: KeyedList,
): readonly Json[] {
  const keyOf = (element: JsonObject): Json => requireKey(element, mergeKey, path);
  const deletions = new Set(patch.filter((element) => directiveOf(element) === "delete").map(keyOf));
  const changes = patch.filter((element) => directiveOf(element) === undefined);
  if (patch.some((element) => directiveOf(element) === "replace"))
    return sameOr(original, changes.map(plainObject));

  const kept = (original ?? []).filter((element) => !deletions.has(memberOf(element, mergeKey) ?? null));
  const merged = [...kept];
  // The first of several elements with one key is the one that is patched, as in the real server.
  const positions = new Map<Json, number>();
  kept.forEach((element, index) => {
    const key = memberOf(element, mergeKey) ?? null;
    if (!positions.has(key)) positions.set(key, index);
  });
  for (const change of changes) {
    const key = keyOf(change);
    const position = positions.get(key) ?? merged.length;
    const element = merged[position];
    const at = `${path}[${mergeKey}=${JSON.stringify(key)}]`;
    merged[position] = element === undefined ? plainObject(change) : mergeObject(element, change, schema, at);
    positions.set(key, position);
  }
  return sameOr(original, orderMerged(merged, changes, kept, mergeKey));
}

function requireKey(element: JsonObject, mergeKey: string, path: string): Json {
  const key = memberOf(element, mergeKey);
  if (key === undefined || key === null)
    throw invalid(path, `an element does not contain declared merge key: ${mergeKey}`);
  return key;
}

/** The items a patch gives must be in its order list, and in that order. */
function checkOrder(
  patch: readonly Json[],
  order: readonly Json[],
  mergeKey: string | undefined,
  path: string,
): void {
  if (order.length === 0) return;
  const identityOf = (item: Json): Json =>
    mergeKey === undefined || !isJsonObject(item) ? item : requireKey(item, mergeKey, path);
  let next = 0;
  const ranks = new Map(order.map((item, index) => [identityOf(item), index]));
  for (const item of patch) {
    if (isJsonObject(item) && directiveOf(item) !== undefined) continue;
    const rank = ranks.get(identityOf(item));
    if (rank === undefined || rank < next)
      throw invalid(path, `the patch's items do not follow its ${SET_ELEMENT_ORDER}`);
    next = rank;
  }
}

/** `original` itself if the list is the same after all, so that callers can tell by `===`. */
function sameOr(original: Json | undefined, list: readonly Json[]): readonly Json[] {
  if (!isJsonList(original) || original.length !== list.length) return list;
  return list.every((item, index) => item === original[index] || jsonEqual(item, original[index]))
    ? original
    : list;
}

/** What a patch value amounts to where there is nothing to merge it with; undefined if it only deletes. */
function plainValue(value: Json): Json | undefined {
  if (isJsonList(value))
    return value.filter((item) => !isJsonObject(item) || !directiveOf(item)).map(plainElement);
  if (!isJsonObject(value)) return value ?? undefined;
  return directiveOf(value) === "delete" ? undefined : plainObject(value);
}

function plainElement(item: Json): Json {
  return item === null ? null : (plainValue(item) ?? null);
}

function plainObject(patch: JsonObject): JsonObject {
  const members = entriesOf(patch).flatMap(([key, value]): [string, Json][] => {
    const plain =
      isDirective(key) || (key === PATCH_DIRECTIVE && directiveOf(patch)) ? undefined : plainValue(value);
    return plain === undefined ? [] : [[key, plain]];
  });
  return Object.fromEntries(members);
}

function directiveOf(element: JsonObject): "replace" | "delete" | undefined {
  const directive = memberOf(element, PATCH_DIRECTIVE);
  return directive === "replace" || directive === "delete" ? directive : undefined;
}

function isDirective(key: string): boolean {
  return key === RETAIN_KEYS || key.startsWith(SET_ELEMENT_ORDER) || key.startsWith(DELETE_FROM_LIST);
}

function listDirective(value: Json, name: string, path: string): readonly Json[] {
  if (isJsonList(value)) return value;
  throw badRequest(path, `${name} must be a list, not ${describeJson(value)}`);
}

function badRequest(path: string, why: string): KubeError {
  return new KubeError("BadRequest", path === "" ? why : `${path}: ${why}`);
}

function invalid(path: string, why: string): KubeError {
  return new KubeError("Invalid", `${path}: ${why}`);
}
