import {
  entriesOf,
  isJsonList,
  isJsonObject,
  jsonEqual,
  type Json,
  type JsonObject,
} from "../../kube/patch/json.ts";
import type { ApiObject } from "../objects.ts";
import {
  knownSchema,
  type FieldSchema,
  type GroupVersionKind,
  type ObjectSchema,
  type TypeSchema,
} from "../schema/schema.ts";
import { IMMUTABLE, invalidValue, notSupported, required, type Cause } from "./causes.ts";
import type { DefinitionRules } from "./definition.ts";
import { DEFINITION_RULES } from "./definition-rules.ts";
import type { RuleParts } from "./kind-rules.ts";

/**
 * The rules of a kind that nobody wrote rules for, from the field table: what the published schema requires and
 * defaults, with what `definition.ts` adds where the schema says less or more than a real server does.
 *
 * A struct that Go keeps by value is there even when nobody sent it, so its fields are looked at; what is behind a
 * pointer is looked at when it was sent. The status belongs to controllers: it is neither filled in nor judged.
 */
export function tableRules(kind: GroupVersionKind): RuleParts<ApiObject> {
  const judge = (object: ApiObject): Cause[] => causesOf(knownSchema(kind), "", object as JsonObject);
  return {
    applyDefaults: (object) => filled(knownSchema(kind), object as JsonObject) as unknown as ApiObject,
    validateNew: judge,
    validateChange: (object, old) => {
      // What is stored may be older than the rule: somebody must still be able to take a finalizer off it.
      const before = new Set(judge(old).map(textOf));
      return [
        ...judge(object).filter((cause) => !before.has(textOf(cause))),
        ...changed(knownSchema(kind), object as JsonObject, old as JsonObject),
      ];
    },
  };
}

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/** Metadata has rules of its own, and the status is not the client's. */
function isLookedAt({ name, type }: FieldSchema, schema: ObjectSchema): boolean {
  if (type.kind === "object" && type.schema.name === OBJECT_META) return false;
  return name !== "status" || schema.kinds.length === 0;
}

function filled(schema: ObjectSchema, object: JsonObject): JsonObject {
  const members: Record<string, Json> = {};
  for (const field of schema.fields) {
    if (!isLookedAt(field, schema)) continue;
    const value = object[field.name];
    const next = value === undefined ? defaultOf(field) : filledValue(field.type, value);
    if (next !== undefined && next !== value) members[field.name] = next;
  }
  const whole = Object.keys(members).length === 0 ? object : { ...object, ...members };
  return rulesOf(schema).defaults?.(whole) ?? whole;
}

/** A default that is Go's zero is what absence means anyway; it is written when the object is completed. */
function defaultOf({ type, isPointer, default: published }: FieldSchema): Json | undefined {
  if (published !== undefined && (isPointer || !isZero(published as Json))) return published as Json;
  if (type.kind !== "object" || isPointer) return undefined;
  const inner = filled(type.schema, {});
  return Object.keys(inner).length === 0 ? undefined : inner;
}

function isZero(value: Json): boolean {
  if (isJsonObject(value)) return Object.keys(value).length === 0;
  return value === 0 || value === "" || value === false || value === null;
}

function filledValue(type: TypeSchema, value: Json): Json {
  if (type.kind === "object") return isJsonObject(value) ? filled(type.schema, value) : value;
  if (type.kind === "list" && isJsonList(value)) {
    const next = value.map((item) => filledValue(type.element, item));
    return next.some((item, index) => item !== value[index]) ? next : value;
  }
  if (type.kind === "map" && isJsonObject(value)) {
    const entries = entriesOf(value).map(([key, item]) => [key, filledValue(type.value, item)] as const);
    return entries.some(([key, item]) => item !== value[key]) ? Object.fromEntries(entries) : value;
  }
  return value;
}

/** What is wrong with `object`, which is found at `path`; empty for the object itself. */
function causesOf(schema: ObjectSchema, path: string, object: JsonObject): Cause[] {
  const rules = rulesOf(schema);
  if (rules.instead !== undefined) return rules.instead(path, object);
  return [
    ...schema.fields
      .filter((field) => isLookedAt(field, schema))
      .flatMap((field) =>
        causesOfField(field, rules, path === "" ? field.name : `${path}.${field.name}`, object),
      ),
    ...(rules.validate?.(path, object) ?? []),
  ];
}

function causesOfField(
  field: FieldSchema,
  rules: DefinitionRules,
  path: string,
  object: JsonObject,
): Cause[] {
  const { name, type, isPointer } = field;
  const value = object[name];
  if (isAbsent(field, value)) {
    if (type.kind === "object" && !isPointer) return causesOf(type.schema, path, {});
    return isNeeded(field, rules) ? [required(path, rules.required?.[name])] : [];
  }
  const supported = rules.values?.[name];
  if (supported !== undefined && typeof value === "string" && !supported.includes(value)) {
    return [notSupported(path, value, supported)];
  }
  return causesOfValue(type, path, value ?? null);
}

function isAbsent({ isPointer }: FieldSchema, value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  return !isPointer && (value === "" || (isJsonList(value) && value.length === 0));
}

/** Of numbers, quantities and booleans the schema requires that a client says them, and a server takes their zero. */
function isNeeded({ name, type, isPointer, isRequired }: FieldSchema, rules: DefinitionRules): boolean {
  if (rules.required?.[name] !== undefined) return true;
  if (!isRequired || rules.zeroes?.includes(name)) return false;
  return isPointer || type.kind !== "scalar" || ZERO_IS_NOTHING.has(type.scalar);
}

const ZERO_IS_NOTHING: ReadonlySet<string> = new Set(["string", "bytes", "raw"]);

function causesOfValue(type: TypeSchema, path: string, value: Json): Cause[] {
  if (type.kind === "object" && isJsonObject(value)) return causesOf(type.schema, path, value);
  if (type.kind === "list" && isJsonList(value)) {
    return value.flatMap((item, index) => causesOfValue(type.element, `${path}[${index}]`, item));
  }
  if (type.kind === "map" && isJsonObject(value)) {
    return entriesOf(value).flatMap(([key, item]) => causesOfValue(type.value, `${path}[${key}]`, item));
  }
  return [];
}

function changed(schema: ObjectSchema, object: JsonObject, old: JsonObject): Cause[] {
  return (rulesOf(schema).immutable ?? []).flatMap((name) =>
    jsonEqual(object[name] ?? null, old[name] ?? null) ? [] : [invalidValue(name, object[name], IMMUTABLE)],
  );
}

function rulesOf({ name }: ObjectSchema): DefinitionRules {
  return DEFINITION_RULES.get(name) ?? {};
}

function textOf({ reason, field, message }: Cause): string {
  return `${reason} ${field} ${message}`;
}
