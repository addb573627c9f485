import { unreachable } from "../base/assert.ts";
import {
  Duration,
  isList,
  MapValue,
  ObjectValue,
  OpaqueValue,
  OptionalValue,
  Timestamp,
  TypeValue,
  type Value,
} from "./values.ts";
import { Uint } from "./numbers.ts";

/** What is known of a value before there is one. */
export type Type =
  | { readonly kind: "dyn" }
  | { readonly kind: "scalar"; readonly name: ScalarName }
  | { readonly kind: "list"; readonly element: Type }
  | { readonly kind: "map"; readonly key: Type; readonly value: Type }
  | { readonly kind: "optional"; readonly of: Type }
  | { readonly kind: "type"; readonly of: Type }
  /** Without fields it is opaque: a type of a library. */
  | { readonly kind: "object"; readonly name: string; readonly field?: (name: string) => Type | undefined }
  /** Stands for any type in a signature, the same wherever its name occurs. */
  | { readonly kind: "param"; readonly name: string };

const SCALARS = [
  "null",
  "bool",
  "int",
  "uint",
  "double",
  "string",
  "bytes",
  "timestamp",
  "duration",
] as const;
export type ScalarName = (typeof SCALARS)[number];

export const DYN: Type = { kind: "dyn" };
export const BOOL = scalar("bool");
export const INT = scalar("int");
export const STRING = scalar("string");
export const NULL = scalar("null");

export function scalar(name: ScalarName): Type {
  return { kind: "scalar", name };
}

export function listOf(element: Type): Type {
  return { kind: "list", element };
}

export function mapOf(key: Type, value: Type): Type {
  return { kind: "map", key, value };
}

export function optionalOf(of: Type): Type {
  return { kind: "optional", of };
}

/** `int`, `list(A)`, `map(K, V)`, `optional(A)`, `type(A)`, a capital letter for a parameter, else a type of a library. */
export function parseType(text: string): Type {
  const trimmed = text.trim();
  const open = trimmed.indexOf("(");
  if (open > 0) {
    const args = splitTypes(trimmed.slice(open + 1, -1)).map(parseType);
    const [first = DYN, second = DYN] = args;
    switch (trimmed.slice(0, open)) {
      case "list":
        return listOf(first);
      case "map":
        return mapOf(first, second);
      case "optional":
        return optionalOf(first);
      default:
        return { kind: "type", of: first };
    }
  }
  if (trimmed === "dyn") return DYN;
  if (/^[A-Z]$/.test(trimmed)) return { kind: "param", name: trimmed };
  const known = SCALARS.find((name) => name === trimmed);
  return known === undefined ? { kind: "object", name: trimmed } : scalar(known);
}

/** At commas that stand in no parentheses. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let [depth, start] = [0, 0];
  for (let at = 0; at <= text.length; at++) {
    const char = text[at];
    if (char === "(") depth++;
    if (char === ")") depth--;
    if ((char === "," && depth === 0) || at === text.length) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return parts.filter((part) => part.trim() !== "");
}

export type Bindings = Map<string, Type>;

/** Whether a value of type `given` may stand where `wanted` is asked for; binds parameters of `wanted`. */
export function accepts(wanted: Type, given: Type, bindings: Bindings): boolean {
  if (wanted.kind === "param") return bind(wanted.name, given, bindings);
  if (wanted.kind === "dyn" || given.kind === "dyn" || given.kind === "param") return true;
  if (isNull(given)) return isNullable(wanted);
  switch (wanted.kind) {
    case "scalar":
      return given.kind === "scalar" && given.name === wanted.name;
    case "list":
      return given.kind === "list" && accepts(wanted.element, given.element, bindings);
    case "map":
      return (
        given.kind === "map" &&
        accepts(wanted.key, given.key, bindings) &&
        accepts(wanted.value, given.value, bindings)
      );
    case "optional":
      return given.kind === "optional" && accepts(wanted.of, given.of, bindings);
    case "type":
      return given.kind === "type";
    case "object":
      return given.kind === "object" && given.name === wanted.name;
    default:
      return unreachable(wanted);
  }
}

function bind(name: string, given: Type, bindings: Bindings): boolean {
  const bound = bindings.get(name);
  if (bound === undefined || bound.kind === "param") {
    bindings.set(name, given);
    return true;
  }
  if (accepts(bound, given, bindings)) {
    if (given.kind === "dyn") bindings.set(name, given);
    return true;
  }
  if (!accepts(given, bound, bindings)) return false;
  bindings.set(name, given);
  return true;
}

function isNull(type: Type): boolean {
  return type.kind === "scalar" && type.name === "null";
}

function isNullable(type: Type): boolean {
  if (type.kind === "scalar") return ["null", "timestamp", "duration"].includes(type.name);
  return type.kind === "object";
}

/** With parameters replaced by what they are bound to; by dyn where nothing said. */
export function substitute(type: Type, bindings: Bindings): Type {
  switch (type.kind) {
    case "param":
      return bindings.get(type.name) ?? DYN;
    case "list":
      return listOf(substitute(type.element, bindings));
    case "map":
      return mapOf(substitute(type.key, bindings), substitute(type.value, bindings));
    case "optional":
      return optionalOf(substitute(type.of, bindings));
    case "type":
      return { kind: "type", of: substitute(type.of, bindings) };
    case "dyn":
    case "scalar":
    case "object":
      return type;
    default:
      return unreachable(type);
  }
}

export function sameType(a: Type, b: Type): boolean {
  return formatType(a) === formatType(b);
}

export function formatType(type: Type): string {
  switch (type.kind) {
    case "dyn":
      return "dyn";
    case "scalar":
      return WIRE_NAMES[type.name] ?? type.name;
    case "list":
      return `list(${formatType(type.element)})`;
    case "map":
      return `map(${formatType(type.key)}, ${formatType(type.value)})`;
    case "optional":
      return `optional_type(${formatType(type.of)})`;
    case "type":
      return `type(${formatType(type.of)})`;
    case "object":
    case "param":
      return type.name;
    default:
      return unreachable(type);
  }
}

const WIRE_NAMES: Readonly<Partial<Record<ScalarName, string>>> = {
  null: "null_type",
  timestamp: "google.protobuf.Timestamp",
  duration: "google.protobuf.Duration",
};

/** Whether a value is of a type, as far as one look tells: what is in a list is not asked. */
export function isOfType(value: Value, type: Type): boolean {
  switch (type.kind) {
    case "dyn":
    case "param":
      return true;
    case "list":
      return isList(value);
    case "map":
      return value instanceof MapValue;
    case "optional":
      return value instanceof OptionalValue;
    case "type":
      return value instanceof TypeValue;
    case "object":
      return (value instanceof OpaqueValue || value instanceof ObjectValue) && value.type === type.name;
    case "scalar":
      return isScalar(value, type.name);
    default:
      return unreachable(type);
  }
}

function isScalar(value: Value, name: ScalarName): boolean {
  switch (name) {
    case "null":
      return value === null;
    case "bool":
      return typeof value === "boolean";
    case "int":
      return typeof value === "bigint";
    case "double":
      return typeof value === "number";
    case "string":
      return typeof value === "string";
    case "uint":
      return value instanceof Uint;
    case "bytes":
      return value instanceof Uint8Array;
    case "timestamp":
      return value instanceof Timestamp;
    case "duration":
      return value instanceof Duration;
    default:
      return unreachable(name);
  }
}
