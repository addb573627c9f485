import { KubeError } from "../errors.ts";

/**
 * Objects as they travel. A member that is `undefined` is treated as absent everywhere, because our
 * typed objects have optional fields and `JSON.stringify` drops them anyway.
 *
 * Keys are data, whoever sent them: `__proto__`, `constructor` and `prototype` are read with `hasOwn`
 * and written with functions that define an own property, so no patch can reach a prototype.
 */
export type Json = null | boolean | number | bigint | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/**
 * Levels a document or a patch may nest. The deepest object we know of (a CRD schema) has about 40,
 * and a recursion of 256 frames is far from the end of any stack.
 */
export const JSON_DEPTH_MAX = 256;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `Array.isArray` that keeps the element type of a read-only list. */
export function isJsonList(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

/** An own member, or undefined; never something inherited. */
export function memberOf(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

export function entriesOf(object: JsonObject): [string, Json][] {
  return Object.entries(object).filter((entry): entry is [string, Json] => entry[1] !== undefined);
}

/** A copy with some members set and those that map to undefined taken away; key order is kept. */
export function withMembers(object: JsonObject, changes: ReadonlyMap<string, Json | undefined>): JsonObject {
  const members = new Map<string, Json | undefined>(entriesOf(object));
  for (const [key, value] of changes) {
    if (value === undefined) members.delete(key);
    else members.set(key, value);
  }
  return Object.fromEntries(members);
}

/** Equal as JSON: key order means nothing, element order does. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isJsonList(a)) {
    return isJsonList(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return false;
  const entries = entriesOf(a);
  return (
    entries.length === entriesOf(b).length &&
    entries.every(([key, value]) => jsonEqual(value, memberOf(b, key)))
  );
}

export function cloneJson(value: Json): Json {
  if (isJsonList(value)) return value.map(cloneJson);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(entriesOf(value).map(([key, member]) => [key, cloneJson(member)]));
}

/** Whether `value` has more than `levels` levels; a scalar has none. Stops there, so a cycle is only too deep. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels <= 0) return true;
  return Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}

/** Takes a value from outside as JSON once it is known not to exhaust the stack; `what` names it in the error. */
export function checkDepth(value: unknown, what: string): Json {
  if (isDeeperThan(value, JSON_DEPTH_MAX)) {
    throw new KubeError("BadRequest", `${what} nests deeper than ${JSON_DEPTH_MAX} levels`);
  }
  return value as Json;
}

/** For messages: what kind of JSON this is, without quoting data that may be secret. */
export function describeJson(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (isJsonList(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
