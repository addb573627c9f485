import { isJsonList, isJsonObject, withMembers, type Json, type JsonObject } from "../../kube/patch/json.ts";
import type { ApplySchema, ListSchema, StructSchema } from "./apply-schema.ts";
import { itemsOf, type ListItem } from "./list-items.ts";
import type { PathElement } from "./path-element.ts";

/**
 * What an applied object makes of the live one, before anything is taken away: scalars and atomic values are
 * replaced, objects and maps merge by name, lists and sets by element. A null takes a scalar's place and stays
 * in the outcome, for decoding to drop.
 */
export function mergeObjects(schema: StructSchema, live: JsonObject, applied: JsonObject): JsonObject {
  return mergeMembers(schema, live, applied);
}

function merge(schema: ApplySchema | undefined, live: Json | undefined, applied: Json): Json {
  if (schema === undefined || schema.isAtomic || isBlank(live)) return applied;
  if (schema.kind === "list") return isJsonList(applied) ? mergeLists(schema, live, applied) : live;
  return isJsonObject(live) && isJsonObject(applied) ? mergeMembers(schema, live, applied) : live;
}

function mergeMembers(
  schema: Extract<ApplySchema, { kind: "struct" | "map" }>,
  live: JsonObject,
  applied: JsonObject,
): JsonObject {
  const changes = new Map<string, Json>();
  for (const name of Object.keys(applied)) {
    const value = applied[name];
    if (value === undefined) continue;
    const member = Object.hasOwn(live, name) ? live[name] : undefined;
    changes.set(name, merge(schema.kind === "struct" ? schema.field(name) : schema.element, member, value));
  }
  return withMembers(live, changes);
}

/**
 * Elements that both have stand in the order of the applied list; those that only the live list has keep
 * their place before the next common one.
 */
function mergeLists(schema: ListSchema, live: Json, applied: Json): Json {
  const [own, wanted] = [itemsOf(schema, live), itemsOf(schema, applied)];
  const liveByElement = uniqueByElement(own);
  const wantedElements = new Set(wanted.map(({ element }) => element));
  const common = wanted.filter(({ element }) => liveByElement.has(element)).map(({ element }) => element);
  const merged: Json[] = [];
  let at = 0;
  let commonAt = 0;

  function takeLiveUntil(stop: PathElement | undefined): void {
    for (; at < own.length && own[at]?.element !== stop; at++) {
      const item = own[at];
      if (item !== undefined && !wantedElements.has(item.element)) merged.push(item.value);
    }
  }

  for (const { element, value } of wanted) {
    takeLiveUntil(common[commonAt]);
    merged.push(merge(schema.element, liveByElement.get(element), value));
    if (element !== common[commonAt]) continue;
    commonAt++;
    if (own[at]?.element === element) at++;
  }
  takeLiveUntil(undefined);
  return merged;
}

/** Of elements with the same key none is merged with: the applied one takes the place of all. */
function uniqueByElement(items: readonly ListItem[]): Map<PathElement, Json | undefined> {
  const values = new Map<PathElement, Json | undefined>();
  for (const { element, value } of items) values.set(element, values.has(element) ? undefined : value);
  return values;
}

function isBlank(value: Json | undefined): value is null | undefined {
  if (value === undefined || value === null) return true;
  return isJsonList(value) ? value.length === 0 : isJsonObject(value) && Object.keys(value).length === 0;
}
