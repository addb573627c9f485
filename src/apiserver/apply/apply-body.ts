import { parseJson } from "../../kube/json-text.ts";
import { checkDepth, isJsonObject, type JsonObject } from "../../kube/patch/json.ts";
import { badRequest, type StatusError } from "../errors.ts";
import type { FieldValidation } from "../schema/body.ts";
import { DecodeFailure } from "../schema/decode-failure.ts";
import { findDuplicateKeys } from "../schema/duplicate-keys.ts";
import { parseYaml, type ParsedText } from "../schema/yaml-body.ts";

export interface ApplyBody {
  readonly applied: JsonObject;
  /** Keys that it says twice; none are looked for under Ignore, and any is an error under Strict. */
  readonly duplicates: readonly string[];
}

/** The body of an apply: YAML, of which JSON is a part. */
export function parseApplyBody(text: string, fieldValidation: FieldValidation = "Warn"): ApplyBody {
  const { value, duplicates } = isJson(text) ? parseJsonBody(text) : parseYamlBody(text);
  if (!isJsonObject(value)) {
    const what = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    throw undecodable(`json: cannot unmarshal ${what} into Go value of type map[string]interface {}`);
  }
  const applied = checkDepth(value, "the applied object") as JsonObject;
  if (fieldValidation === "Ignore" || duplicates.length === 0) return { applied, duplicates: [] };
  if (fieldValidation === "Warn") return { applied, duplicates };
  const problems = duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`);
  throw badRequest(`error strict decoding YAML: ${problems.join(", ")}`);
}

function isJson(text: string): boolean {
  return text.trimStart().startsWith("{");
}

/** A manifest in YAML may begin with a brace too, so what JSON cannot read gets its second chance. */
function parseJsonBody(text: string): ParsedText {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return parseYamlBody(text);
  }
  return { value, duplicates: findDuplicateKeys(text) };
}

function parseYamlBody(text: string): ParsedText {
  try {
    return parseYaml(text);
  } catch (error) {
    throw error instanceof DecodeFailure ? undecodable(error.message) : error;
  }
}

function undecodable(why: string): StatusError {
  return badRequest(`error decoding YAML: ${why}`);
}
