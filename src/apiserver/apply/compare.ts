import {
  isJsonList,
  isJsonObject,
  jsonEqual,
  memberOf,
  type Json,
  type JsonObject,
} from "../../kube/patch/json.ts";
import type { ApplySchema, ListSchema, StructSchema } from "./apply-schema.ts";
import { METADATA } from "./extract.ts";
import { deepDifference, difference, FieldSetBuilder, type FieldSet } from "./field-set.ts";
import { groupItems } from "./list-items.ts";
import { fieldElement, type PathElement } from "./path-element.ts";

/**
 * What a write did to the fields of an object. No path is in two of the sets, unless several list elements had the
 * same key: then the one that remains of them is new and what they were is gone.
 */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/**
 * Unlike `extractFields`, an object, map or list that appears or goes is a field of its own besides its parts, so that
 * its creator is seen to own it as such (the `.` of FieldsV1).
 *
 * Both objects may be in the short or the complete form: what Go always writes counts as there.
 */
export function compareObjects(schema: StructSchema, before: JsonObject, after: JsonObject): Comparison {
  const comparer = new Comparer();
  comparer.value(schema, before, after);
  return {
    added: difference(comparer.added.build(), METADATA),
    modified: comparer.modified.build(),
    removed: difference(comparer.removed.build(), METADATA),
  };
}

/** Without what happened to some fields and all below them. */
export function ignoring({ added, modified, removed }: Comparison, fields: FieldSet): Comparison {
  return {
    added: deepDifference(added, fields),
    modified: deepDifference(modified, fields),
    removed: deepDifference(removed, fields),
  };
}

/** Undefined means absent; null is a value like others. */
type Side = Json | undefined;

class Comparer {
  readonly added = new FieldSetBuilder();
  readonly modified = new FieldSetBuilder();
  readonly removed = new FieldSetBuilder();
  readonly #path: PathElement[] = [];

  value(schema: ApplySchema | undefined, before: Side, after: Side): void {
    if (before === after) return;
    if (schema === undefined || schema.isAtomic || isBlank(schema, before, after)) {
      this.#leaf(before, after);
      return;
    }
    if (schema.kind === "list") this.#list(schema, before, after);
    else if (schema.kind === "struct") this.#struct(schema, before, after);
    else this.#map(schema.element, before, after);
    if (before === undefined) this.added.insert(this.#path);
    else if (after === undefined) this.removed.insert(this.#path);
  }

  #leaf(before: Side, after: Side): void {
    if (before === undefined) this.added.insert(this.#path);
    else if (after === undefined) this.removed.insert(this.#path);
    else if (!jsonEqual(before, after)) this.modified.insert(this.#path);
  }

  #struct(schema: StructSchema, before: Side, after: Side): void {
    const [left, right] = [toObject(before), toObject(after)];
    const visit = (name: string) => {
      if (schema.untracked.has(name)) return;
      const empty = schema.emitted.get(name);
      this.#member(name, schema.field(name), valueIn(left, name, empty), valueIn(right, name, empty));
    };
    forEachName(left, right, visit);
    // Where both are there, what neither wrote is the same in both.
    if (left !== undefined && right !== undefined) return;
    const only = left ?? right;
    for (const name of schema.emitted.keys()) if (only?.[name] === undefined) visit(name);
  }

  #map(element: ApplySchema, before: Side, after: Side): void {
    const [left, right] = [toObject(before), toObject(after)];
    forEachName(left, right, (name) => {
      this.#member(name, element, valueIn(left, name), valueIn(right, name));
    });
  }

  #member(name: string, schema: ApplySchema | undefined, before: Side, after: Side): void {
    if (before === after) return;
    this.#at(fieldElement(name), () => this.value(schema, before, after));
  }

  #list(schema: ListSchema, before: Side, after: Side): void {
    const [left, right] = [groupItems(schema, before), groupItems(schema, after)];
    for (const element of new Set([...left.keys(), ...right.keys()])) {
      this.#at(element, () => this.#items(schema, left.get(element) ?? [], right.get(element) ?? []));
    }
  }

  /** Elements with the same key are one field while there are several of them. */
  #items({ element }: ListSchema, before: readonly Json[], after: readonly Json[]): void {
    if (before.length <= 1 && after.length <= 1) {
      this.value(element, before[0], after[0]);
    } else if (before.length > 1 && after.length > 1) {
      if (!jsonEqual(before, after)) this.modified.insert(this.#path);
    } else if (before.length > 1) {
      this.value(element, undefined, after[0]);
      this.removed.insert(this.#path);
    } else {
      this.value(element, before[0], undefined);
      this.added.insert(this.#path);
    }
  }

  #at(element: PathElement, compare: () => void): void {
    this.#path.push(element);
    compare();
    this.#path.pop();
  }
}

function forEachName(
  left: JsonObject | undefined,
  right: JsonObject | undefined,
  visit: (name: string) => void,
): void {
  if (left !== undefined) for (const name of Object.keys(left)) visit(name);
  if (right === undefined) return;
  for (const name of Object.keys(right)) if (left === undefined || !Object.hasOwn(left, name)) visit(name);
}

function valueIn(object: JsonObject | undefined, name: string, empty?: Json): Side {
  if (object === undefined) return undefined;
  const value = memberOf(object, name);
  return value === undefined ? empty : value;
}

/** Empty on both sides, so that the difference between `{}` and nothing is all there is. */
function isBlank(schema: ApplySchema, before: Side, after: Side): boolean {
  return isEmptySide(schema, before) && isEmptySide(schema, after);
}

function isEmptySide(schema: ApplySchema, side: Side): boolean {
  if (isJsonList(side)) return side.length === 0;
  if (!isJsonObject(side)) return true;
  for (const _name in side) return false;
  return schema.kind !== "struct" || schema.emitted.size === 0;
}

function toObject(side: Side): JsonObject | undefined {
  return isJsonObject(side) ? side : undefined;
}
