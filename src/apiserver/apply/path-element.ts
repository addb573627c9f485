import { formatJson, parseJson } from "../../kube/json-text.ts";
import { isJsonObject, type Json } from "../../kube/patch/json.ts";

/**
 * One step of a path, in the spelling of FieldsV1: `f:spec` a field or a key of a map, `k:{"name":"c"}` an
 * element of a list by its key members, `v:"ReadWriteOnce"` an element of a set. Spellings are canonical (key
 * members sorted, strings escaped as Go does), so that two steps are the same exactly if their texts are.
 */
export type PathElement = string & { readonly __brand: "PathElement" };

export type Path = readonly PathElement[];

export function fieldElement(name: string): PathElement {
  return `f:${name}` as PathElement;
}

/** The members must be sorted by name. */
export function keyElement(members: readonly (readonly [name: string, value: Json])[]): PathElement {
  const texts = members.map(([name, value]) => `${toGoJson(name)}:${toGoJson(value)}`);
  return `k:{${texts.join(",")}}` as PathElement;
}

export function valueElement(value: Json): PathElement {
  return `v:${toGoJson(value)}` as PathElement;
}

/** The name of a field or map key; undefined for elements of lists. */
export function fieldNameOf(element: PathElement): string | undefined {
  return element.startsWith("f:") ? element.slice(2) : undefined;
}

/**
 * A step that somebody else spelt. `skip` is for kinds of steps we do not know, which a later version may; undefined
 * for what is no step at all.
 */
export function parseElement(text: string): PathElement | "skip" | undefined {
  if (text.length < 2 || text[1] !== ":") return undefined;
  if (text.startsWith("f:")) return text as PathElement;
  if (text.startsWith("i:")) return /^i:-?[0-9]+$/.test(text) ? (text as PathElement) : undefined;
  if (!text.startsWith("k:") && !text.startsWith("v:")) return "skip";
  const value = parseValue(text.slice(2));
  if (value === undefined) return undefined;
  if (text.startsWith("v:")) return valueElement(value);
  return isJsonObject(value) ? keyElement(sortedMembers(value)) : undefined;
}

/** The order of the real server: fields by name, then elements by key, then those of sets, numbers by value. */
export function compareElements(a: PathElement, b: PathElement): number {
  if (a === b) return 0;
  if (a[0] !== b[0]) return RANKS.indexOf(a[0] ?? "") - RANKS.indexOf(b[0] ?? "");
  if (a.startsWith("f:")) return a < b ? -1 : 1;
  const [left, right] = [parseValue(a.slice(2)), parseValue(b.slice(2))];
  return a.startsWith("k:") ? compareKeys(left, right) : compareScalars(left, right);
}

const RANKS = "fkvi";

/** `.spec.containers[name="c"].image`, as conflicts name a field. */
export function describePath(path: Path): string {
  return path.map(describeElement).join("");
}

function describeElement(element: PathElement): string {
  const rest = element.slice(2);
  if (element.startsWith("f:")) return `.${rest}`;
  if (element.startsWith("i:")) return `[${rest}]`;
  if (element.startsWith("v:")) return `[=${formatJson(parseValue(rest))}]`;
  const members = sortedMembers(parseValue(rest));
  return `[${members.map(([name, value]) => `${name}=${formatJson(value)}`).join(",")}]`;
}

function compareKeys(a: Json | undefined, b: Json | undefined): number {
  const [left, right] = [sortedMembers(a), sortedMembers(b)];
  for (const [index, [name, value]] of left.entries()) {
    const [otherName, otherValue] = right[index] ?? [];
    if (otherName === undefined) return 1;
    if (name !== otherName) return name < otherName ? -1 : 1;
    const order = compareScalars(value, otherValue);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

/** Numbers come before texts, texts before booleans. */
function compareScalars(a: Json | undefined, b: Json | undefined): number {
  if (isNumber(a) && isNumber(b)) return a === b ? 0 : a < b ? -1 : 1;
  if (typeof a === "string" && typeof b === "string") return a === b ? 0 : a < b ? -1 : 1;
  return rankOf(a) - rankOf(b) || Number(a) - Number(b);
}

const TYPES = ["number", "string", "boolean", "object"];

function rankOf(value: Json | undefined): number {
  return isNumber(value) ? 0 : TYPES.indexOf(typeof value);
}

function isNumber(value: Json | undefined): value is number | bigint {
  return typeof value === "number" || typeof value === "bigint";
}

function sortedMembers(value: Json | undefined): [string, Json][] {
  if (!isJsonObject(value)) return [];
  return Object.entries(value)
    .map(([name, member]): [string, Json] => [name, member ?? null])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function parseValue(text: string): Json | undefined {
  try {
    return parseJson(text) as Json;
  } catch {
    return undefined;
  }
}

/** Characters that Go writes as \u escapes in JSON, where JSON.stringify does not, and the two it abbreviates. */
const GO_ESCAPES = /[<>&\u2028\u2029]|\\[bf]/g;

/** What nearly every key and element is made of, and needs no escaping in anybody's JSON. */
const PLAIN = /^[\w ./:-]*$/;

function toGoJson(value: Json): string {
  if (typeof value === "string" && PLAIN.test(value)) return `"${value}"`;
  return formatJson(value).replace(GO_ESCAPES, (text) => {
    const code = text === "\\b" ? 8 : text === "\\f" ? 12 : text.charCodeAt(0);
    return `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
