import { Composer, Lexer, Parser, visit, type CST, type Document } from "yaml";
import { checkDepth, isJsonObject, JSON_DEPTH_MAX, type JsonObject } from "../../kube/patch/json.ts";
import { badRequest, type StatusError } from "../errors.ts";
import type { FieldValidation } from "../schema/body.ts";
import { findDuplicateKeys } from "../schema/duplicate-keys.ts";

/** What was applied, and what its sender should hear about it. */
export interface ApplyBody {
  readonly applied: JsonObject;
  readonly warnings: readonly string[];
}

/**
 * Lexical tokens of a body in YAML. A line has about five, so that this is a manifest of 40,000 lines; reading it takes
 * half a second, in which the server does nothing else. JSON has no such limit.
 */
const YAML_TOKENS_MAX = 200_000;

/** Nodes that aliases may expand to: plenty for a manifest, too few for a bomb. */
const ALIASES_MAX = 100;

/**
 * The body of an apply: YAML, of which JSON is a part. YAML is read as version 1.2, in which `yes` and `on` are texts; the
 * real server still takes them for booleans.
 */
export function parseApplyBody(text: string, fieldValidation: FieldValidation = "Warn"): ApplyBody {
  const { value, duplicates } = isJson(text) ? parseJson(text) : parseYaml(text);
  if (!isJsonObject(value)) {
    const what = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    throw undecodable(`json: cannot unmarshal ${what} into Go value of type map[string]interface {}`);
  }
  const applied = checkDepth(value, "the applied object") as JsonObject;
  if (fieldValidation === "Ignore" || duplicates.length === 0) return { applied, warnings: [] };
  const warnings = duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`);
  if (fieldValidation === "Strict") throw badRequest(`error strict decoding YAML: ${warnings.join(", ")}`);
  return { applied, warnings };
}

interface Parsed {
  readonly value: unknown;
  /** Keys that occur twice in the same object; the last one counts. */
  readonly duplicates: readonly string[];
}

function isJson(text: string): boolean {
  return text.trimStart().startsWith("{");
}

/** A manifest in YAML may begin with a brace too, so what JSON cannot read gets its second chance. */
function parseJson(text: string): Parsed {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return parseYaml(text);
  }
  return { value, duplicates: findDuplicateKeys(text) };
}

function parseYaml(text: string): Parsed {
  // The library compares every key of a map with every other to find duplicates; 20,000 would take seconds.
  const composer = new Composer({ version: "1.2", uniqueKeys: false });
  const [document, another] = [...composer.compose(tokensOf(text), true, text.length)];
  const fault = document?.errors[0];
  if (document === undefined || fault !== undefined) throw undecodable(firstLine(fault?.message ?? "empty"));
  if (another !== undefined) throw undecodable("the body must be a single document");
  try {
    return { value: document.toJS({ maxAliasCount: ALIASES_MAX }), duplicates: duplicatesIn(document) };
  } catch (error) {
    throw undecodable(error instanceof Error ? error.message : String(error));
  }
}

/**
 * The tokens of a text that can be composed. Composing recurses, and at some 10,000 levels, which are as many bytes, the
 * process does not throw but die; so the depth is watched here, where nothing recurses yet.
 */
function tokensOf(text: string): CST.Token[] {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (++count > YAML_TOKENS_MAX) {
      throw undecodable(`more than ${YAML_TOKENS_MAX} tokens; send an object of this size as JSON`);
    }
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > JSON_DEPTH_MAX) {
      throw undecodable(`the applied object nests deeper than ${JSON_DEPTH_MAX} levels`);
    }
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function duplicatesIn(document: Document.Parsed): readonly string[] {
  const duplicates: string[] = [];
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        const name = String(key);
        if (seen.has(name)) duplicates.push(name);
        seen.add(name);
      }
    },
  });
  return duplicates;
}

function undecodable(why: string): StatusError {
  return badRequest(`error decoding YAML: ${why}`);
}

/** The rest of the message draws an arrow below the line in question. */
function firstLine(message: string): string {
  return message.split("\n", 1).join().replace(/:$/, "");
}
