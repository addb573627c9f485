import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import type { ApiObject } from "../objects.ts";
import { setMember } from "./decode.ts";
import { zeroOf } from "./scalars.ts";
import {
  knownSchema,
  type FieldSchema,
  type GroupVersionKind,
  type ObjectSchema,
  type TypeSchema,
} from "./schema.ts";

/**
 * The short form of decode.ts as it goes over the wire and into the store: fields that Go always writes
 * are there even when they are empty (`status: {}`, `attached: false`, `eventTime: null`), and keys stand
 * in one order whoever sent them, that of the schema, with those of maps sorted.
 *
 * What the definition does not know is not written. An object that is complete comes out as it went in.
 */
export function completeObject(kind: GroupVersionKind, object: ApiObject): ApiObject {
  return completeFields(knownSchema(kind), object as JsonObject) as unknown as ApiObject;
}

function completeFields(schema: ObjectSchema, object: JsonObject): JsonObject {
  const members: Record<string, Json> = {};
  for (const field of schema.fields) {
    const value = object[field.name];
    if (value !== undefined && value !== null) members[field.name] = complete(field.type, value);
    else if (field.isEmitted) members[field.name] = emptyOf(field);
  }
  return members;
}

function complete(type: TypeSchema, value: Json): Json {
  switch (type.kind) {
    case "object":
      return isJsonObject(value) ? completeFields(type.schema, value) : value;
    case "list":
      return isJsonList(value) ? completeList(type.element, value) : value;
    case "map":
      return isJsonObject(value) ? completeMap(type.value, value) : value;
    case "scalar":
      return value;
  }
}

/** A list of scalars is its own complete form. */
function completeList(element: TypeSchema, list: readonly Json[]): Json {
  return element.kind === "object" ? list.map((item) => complete(element, item)) : list;
}

/** Most maps have texts as values, of which only the order is left to do. */
function completeMap(value: TypeSchema, map: JsonObject): JsonObject {
  const keys = Object.keys(map);
  if (keys.length < 2 && value.kind !== "object") return map;
  const members: Record<string, Json> = {};
  for (const key of keys.sort()) setMember(members, key, complete(value, map[key] ?? null));
  return members;
}

/** An empty list or map comes back from Go as null, and so does a pointer that points nowhere. */
function emptyOf({ type, isPointer }: FieldSchema): Json {
  if (isPointer) return null;
  switch (type.kind) {
    case "object":
      return completeFields(type.schema, {});
    case "list":
    case "map":
      return null;
    case "scalar":
      return zeroOf(type.scalar);
  }
}
