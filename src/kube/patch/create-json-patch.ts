import type { JsonPatchOperation } from "../client/client.ts";
import { escapePointerToken, JSON_PATCH_OPERATIONS_MAX } from "./json-patch.ts";
import {
  checkDepth,
  entriesOf,
  isJsonList,
  isJsonObject,
  jsonEqual,
  memberOf,
  type Json,
  type JsonObject,
} from "./json.ts";

/**
 * Operations that turn `before` into `after`, empty if they are equal. Not the shortest there are: lists
 * are compared after their common beginning and end are set aside, which is exact for the usual change (one
 * element added, removed or edited) and correct for all.
 */
export function createJsonPatch(before: unknown, after: unknown): readonly JsonPatchOperation[] {
  const operations: JsonPatchOperation[] = [];
  diff(checkDepth(before, "the object before"), checkDepth(after, "the object after"), "", operations);
  // A server refuses longer patches; one replacement of everything says the same.
  return operations.length > JSON_PATCH_OPERATIONS_MAX
    ? [{ op: "replace", path: "", value: after }]
    : operations;
}

function diff(before: Json, after: Json, path: string, operations: JsonPatchOperation[]): void {
  if (isJsonObject(before) && isJsonObject(after)) diffObjects(before, after, path, operations);
  else if (isJsonList(before) && isJsonList(after)) diffLists(before, after, path, operations);
  else if (before !== after) operations.push({ op: "replace", path, value: after });
}

function diffObjects(
  before: JsonObject,
  after: JsonObject,
  path: string,
  operations: JsonPatchOperation[],
): void {
  for (const [key] of entriesOf(before)) {
    if (memberOf(after, key) === undefined)
      operations.push({ op: "remove", path: `${path}/${escapePointerToken(key)}` });
  }
  for (const [key, value] of entriesOf(after)) {
    const at = `${path}/${escapePointerToken(key)}`;
    const old = memberOf(before, key);
    if (old === undefined) operations.push({ op: "add", path: at, value });
    else diff(old, value, at, operations);
  }
}

function diffLists(
  before: readonly Json[],
  after: readonly Json[],
  path: string,
  operations: JsonPatchOperation[],
): void {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && jsonEqual(before[head], after[head])) head++;
  let tail = 0;
  while (tail < shorter - head && jsonEqual(before[before.length - 1 - tail], after[after.length - 1 - tail]))
    tail++;

  const paired = shorter - tail;
  for (let index = head; index < paired; index++) {
    diff(before[index] ?? null, after[index] ?? null, `${path}/${index}`, operations);
  }
  // From the end, so that no removal moves an element that is still to be removed.
  for (let index = before.length - tail - 1; index >= paired; index--) {
    operations.push({ op: "remove", path: `${path}/${index}` });
  }
  for (let index = paired; index < after.length - tail; index++) {
    operations.push({ op: "add", path: `${path}/${index}`, value: after[index] ?? null });
  }
}
