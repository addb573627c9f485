import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { causeIf, notSupported, type Cause } from "./causes.ts";

/**
 * Where a real server does more than the published schema says, a line for each definition: the defaults that are
 * code and not schema, the fields without which it refuses though they are called optional, and those whose zero it
 * takes though they are called required. Only kinds without rules of their own are judged by it (table-rules.ts).
 */
export interface DefinitionRules {
  /** Applied twice it changes nothing. */
  readonly defaults?: (object: JsonObject) => JsonObject;
  /** Needed whatever the schema says, each with the words that a client gets. */
  readonly required?: Readonly<Record<string, string>>;
  /** Required by the schema, and still good when empty or judged by `validate`. */
  readonly zeroes?: readonly string[];
  /** The only values of a field. */
  readonly values?: Readonly<Record<string, readonly string[]>>;
  readonly validate?: (path: string, object: JsonObject) => Cause[];
  /** Judges all of it, so that nobody looks inside. */
  readonly instead?: (path: string, object: JsonObject) => Cause[];
  /** Of a kind: the members that an update may not change. */
  readonly immutable?: readonly string[];
}

/** Of one package, by the short name of the definition. */
export type PackageRules = Readonly<Record<string, DefinitionRules>>;

/** A value that must be one of these; absence is none of them. */
export function closed(path: string, value: string, supported: readonly string[]): Cause[] {
  return causeIf(!supported.includes(value), notSupported(path, value, supported));
}

export function isEmpty(list: Json | undefined): boolean {
  return !isJsonList(list) || list.length === 0;
}

/** The decoder has seen to it that a text is a text. */
export function textAt(object: JsonObject, name: string): string {
  const value = object[name];
  return typeof value === "string" ? value : "";
}

export function objectAt(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isJsonObject(value) ? value : {};
}
