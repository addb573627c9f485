import { KubeError } from "../errors.ts";
import {
  checkDepth,
  describeJson,
  entriesOf,
  isJsonObject,
  jsonEqual,
  memberOf,
  withMembers,
  type Json,
  type JsonObject,
} from "./json.ts";

/**
 * JSON merge patch (RFC 7386): objects merge, null takes a key away, everything else replaces, lists
 * whole. Parts that do not change are shared with `document`; a patch that changes nothing returns
 * the very same object, so `===` answers "was that a no-op?".
 */
export function applyMergePatch(document: unknown, patch: unknown): JsonObject {
  checkDepth(document, "the document to patch");
  checkDepth(patch, "the merge patch");
  if (!isJsonObject(patch)) {
    throw new KubeError(
      "BadRequest",
      `error decoding patch: a merge patch is an object, not ${describeJson(patch)}`,
    );
  }
  return merge(document as Json, patch);
}

function merge(target: Json | undefined, patch: JsonObject): JsonObject {
  const base = isJsonObject(target) ? target : {};
  const changes = new Map<string, Json | undefined>();
  for (const [key, value] of entriesOf(patch)) {
    const before = memberOf(base, key);
    const after = isJsonObject(value) ? merge(before, value) : (value ?? undefined);
    // An unchanged object came back as itself; comparing it again would cost its size at every level.
    const same = isJsonObject(after) ? after === before : jsonEqual(before, after);
    if (!same) changes.set(key, after);
  }
  return changes.size === 0 ? base : withMembers(base, changes);
}

/**
 * The smallest merge patch that turns `before` into `after`, or undefined if there is nothing to do.
 * A merge patch cannot set null, so a null in `after` is taken as what it means to Kubernetes: absent.
 */
export function createMergePatch(before: unknown, after: unknown): JsonObject | undefined {
  checkDepth(before, "the object before");
  checkDepth(after, "the object after");
  if (!isJsonObject(before) || !isJsonObject(after)) {
    throw new KubeError(
      "BadInput",
      `a merge patch is made between two objects, not ${describeJson(before)} and ${describeJson(after)}`,
    );
  }
  const patch = diff(before, after);
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function diff(before: JsonObject, after: JsonObject): JsonObject {
  const patch = new Map<string, Json>();
  for (const [key, value] of entriesOf(after)) {
    const old = memberOf(before, key);
    if (isJsonObject(old) && isJsonObject(value)) {
      const changes = diff(old, value);
      if (Object.keys(changes).length > 0) patch.set(key, changes);
    } else if (value !== null && !jsonEqual(old, value)) {
      patch.set(key, value);
    }
  }
  for (const [key, old] of entriesOf(before)) {
    const value = memberOf(after, key);
    // A null stays where it was if `after` has it too: taking it away would be a write for nothing.
    if (value === undefined || (value === null && old !== null)) patch.set(key, null);
  }
  return Object.fromEntries(patch);
}
