import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import type { ApplySchema, ListSchema, StructSchema } from "./apply-schema.ts";
import { METADATA } from "./extract.ts";
import { difference, isEmpty, type FieldSet } from "./field-set.ts";
import { elementOf } from "./list-items.ts";
import { fieldElement, fieldNameOf, type PathElement } from "./path-element.ts";

/**
 * Takes out of a merged object what its manager applied before and now nobody owns. `owned` has what it applies now.
 *
 * The object that a field stands in counts as applied with it, so that it goes with the last of them that somebody
 * owns, and takes along what is nobody's. A list element goes as a whole, even if somebody else owns a part of it.
 */
export function pruneFields(
  schema: StructSchema,
  merged: JsonObject,
  { before, owned }: { readonly before: FieldSet; readonly owned: FieldSet },
): JsonObject {
  const abandoned = difference(withNamedFields(schema, before), withNamedFields(schema, owned));
  const rest = removeFields(schema, merged, difference(abandoned, METADATA));
  return isJsonObject(rest) ? rest : {};
}

/** Without the fields of a set. An object or list that is emptied by it becomes null. */
function removeFields(schema: ApplySchema | undefined, value: Json, set: FieldSet): Json {
  if (isEmpty(set) || schema === undefined || schema.isAtomic) return value;
  if (schema.kind === "list") return isJsonList(value) ? removeItems(schema, value, set) : value;
  return isJsonObject(value) ? removeMembers(schema, value, set) : value;
}

function removeMembers(
  schema: Extract<ApplySchema, { kind: "struct" | "map" }>,
  object: JsonObject,
  set: FieldSet,
): Json {
  const members = Object.entries(object).flatMap(([name, value]): [string, Json][] => {
    if (value === undefined) return [];
    const child = set.below.get(fieldElement(name));
    if (child === undefined) return [[name, value]];
    if (child.isMember) return [];
    return [
      [name, removeFields(schema.kind === "struct" ? schema.field(name) : schema.element, value, child)],
    ];
  });
  return members.length === 0 ? null : Object.fromEntries(members);
}

function removeItems(schema: ListSchema, list: readonly Json[], set: FieldSet): Json {
  const items = list.flatMap((item) => {
    const element = elementOf(schema, item);
    const child = element === undefined ? undefined : set.below.get(element);
    if (child === undefined) return [item];
    return child.isMember ? [] : [removeFields(schema.element, item, child)];
  });
  return items.length === 0 ? null : items;
}

/** The set with every field of an object on the way to its paths: of `spec.a.b`, also `spec` and `spec.a`. */
function withNamedFields(schema: ApplySchema | undefined, set: FieldSet): FieldSet {
  if (set.below.size === 0) return set;
  const below = [...set.below].map(([element, child]): [PathElement, FieldSet] => {
    const name = fieldNameOf(element);
    const isNamed = schema?.kind === "struct" && name !== undefined && schema.field(name) !== undefined;
    const rest = withNamedFields(childSchema(schema, name), child);
    return [element, isNamed && !rest.isMember ? { ...rest, isMember: true } : rest];
  });
  return { isMember: set.isMember, below: new Map(below) };
}

function childSchema(schema: ApplySchema | undefined, name: string | undefined): ApplySchema | undefined {
  if (schema === undefined || schema.kind === "scalar") return undefined;
  if (schema.kind === "struct") return name === undefined ? undefined : schema.field(name);
  return schema.element;
}
