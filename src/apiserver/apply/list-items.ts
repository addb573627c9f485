import { isJsonList, isJsonObject, memberOf, type Json } from "../../kube/patch/json.ts";
import type { ListSchema } from "./apply-schema.ts";
import { keyElement, valueElement, type PathElement } from "./path-element.ts";

/** An element of a list that is owned element by element, and the step that leads to it. */
export interface ListItem {
  readonly element: PathElement;
  readonly value: Json;
}

/**
 * The elements of a list or set with their steps, in order. Elements that cannot be told apart from others, because
 * they lack every key or are no objects, are left out: they are nobody's.
 */
export function itemsOf(schema: ListSchema, list: Json | undefined): ListItem[] {
  if (!isJsonList(list)) return [];
  return list.flatMap((value) => {
    const element = elementOf(schema, value);
    return element === undefined ? [] : [{ element, value }];
  });
}

/** The same by step. More than one element has the same step only where an ordinary write made it so. */
export function groupItems(schema: ListSchema, list: Json | undefined): Map<PathElement, Json[]> {
  const groups = new Map<PathElement, Json[]>();
  for (const { element, value } of itemsOf(schema, list)) {
    const group = groups.get(element);
    if (group === undefined) groups.set(element, [value]);
    else group.push(value);
  }
  return groups;
}

/** Undefined for an element that has no key. */
export function elementOf({ keys }: ListSchema, item: Json): PathElement | undefined {
  if (keys.length === 0) return typeof item === "object" ? undefined : valueElement(item);
  if (!isJsonObject(item)) return undefined;
  const members: [string, Json][] = [];
  for (const { name, default: assumed } of keys) {
    const value = memberOf(item, name) ?? assumed;
    if (value !== undefined) members.push([name, value]);
  }
  return members.length === 0 ? undefined : keyElement(members);
}
