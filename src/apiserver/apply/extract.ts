import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import type { ApplySchema, ListSchema, StructSchema } from "./apply-schema.ts";
import { difference, FieldSetBuilder, setOf, type FieldSet } from "./field-set.ts";
import { groupItems } from "./list-items.ts";
import { fieldElement, type PathElement } from "./path-element.ts";

/** Owning the metadata of an object as such means nothing: it is always there. */
export const METADATA: FieldSet = setOf([fieldElement("metadata")]);

/**
 * The fields that an object states: its scalars, its atomic values as one each, the elements of its lists and sets, the
 * keys of its maps, and objects that are empty. An object with fields is not a field itself: whoever says
 * `spec.nodeName` claims that and not `spec`.
 */
export function extractFields(schema: StructSchema, object: JsonObject): FieldSet {
  const extractor = new Extractor();
  extractor.value(schema, object);
  return difference(extractor.set.build(), METADATA);
}

class Extractor {
  readonly set = new FieldSetBuilder();
  readonly #path: PathElement[] = [];

  value(schema: ApplySchema | undefined, value: Json): void {
    if (schema === undefined || schema.isAtomic) this.set.insert(this.#path);
    else if (schema.kind === "list") this.#list(schema, value);
    else if (isJsonObject(value)) this.#members(schema, value);
  }

  #members(schema: Exclude<ApplySchema, ListSchema | { kind: "scalar" }>, object: JsonObject): void {
    for (const name of Object.keys(object)) {
      const value = object[name];
      if (value === undefined || (schema.kind === "struct" && schema.untracked.has(name))) continue;
      this.#path.push(fieldElement(name));
      this.value(schema.kind === "struct" ? schema.field(name) : schema.element, value);
      if (schema.kind === "map" || isBare(value)) this.set.insert(this.#path);
      this.#path.pop();
    }
  }

  #list(schema: ListSchema, list: Json): void {
    if (!isJsonList(list)) return;
    for (const [element, values] of groupItems(schema, list)) {
      this.#path.push(element);
      // Elements with the same key are owned together.
      if (values.length === 1) this.value(schema.element, values[0] ?? null);
      this.set.insert(this.#path);
      this.#path.pop();
    }
  }
}

function isBare(value: Json): boolean {
  return value === null || (isJsonObject(value) && Object.keys(value).length === 0);
}
