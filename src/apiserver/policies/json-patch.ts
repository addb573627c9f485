import { evaluationError } from "../../cel/errors.ts";
import { declare, type Library } from "../../cel/functions.ts";
import { toJson } from "../../cel/json.ts";
import { isList, ObjectValue, type Value } from "../../cel/values.ts";
import { isKubeError } from "../../kube/errors.ts";
import { applyJsonPatch, escapePointerToken } from "../../kube/patch/json-patch.ts";

export const JSON_PATCH_FUNCTIONS: Library = [
  declare("jsonpatch.escapeKey(string) string", (key: string) => escapePointerToken(key)),
];

/** What the operations make of an object; the object itself where a `test` among them does not hold. */
export function patchWithOperations(object: unknown, patch: Value): unknown {
  let patched = object;
  for (const operation of operationsOf(patch)) {
    try {
      patched = applyJsonPatch(patched, [operation]);
    } catch (error) {
      if (!isKubeError(error)) throw error;
      if (operation["op"] === "test") return object;
      throw evaluationError(`JSON Patch: ${error.message.slice(`${error.code}: `.length)}`);
    }
  }
  return patched;
}

function operationsOf(patch: Value): Readonly<Record<string, unknown>>[] {
  if (!isList(patch)) throw evaluationError("JSON Patch: must be a list of JSONPatch");
  return patch.map((operation) => {
    if (!(operation instanceof ObjectValue) || operation.type !== "JSONPatch") {
      throw evaluationError("JSON Patch: must be a list of JSONPatch");
    }
    return toJson(operation) as Readonly<Record<string, unknown>>;
  });
}
