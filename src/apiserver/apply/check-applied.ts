import { apiVersionOf } from "../../kube/object.ts";
import { describeJson, isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { badRequest } from "../errors.ts";
import { applySchemaOf, type ApplySchema, type ListSchema } from "./apply-schema.ts";
import { elementOf } from "./list-items.ts";
import type { TrackedKind } from "./managers.ts";
import { describePath, fieldElement, type PathElement } from "./path-element.ts";

/** Problems that one answer names; the rest come up at the next try. */
const PROBLEMS_MAX = 20;

/**
 * Refuses, with 400, what cannot be applied to an object of this kind: another kind, managedFields, fields that do
 * not exist, objects where lists belong, list elements without a key or with the same one. (The real server answers
 * the last three with 500 and these words.) Whether scalars have their type is left to decoding the outcome.
 */
export function checkApplied(kind: TrackedKind, applied: JsonObject, name: string): void {
  const version = apiVersionOf(kind);
  const given = textOf(applied["apiVersion"]);
  if (given !== version) {
    throw badRequest(
      `Incorrect version specified in apply patch. Specified patch version: ${given}, expected: ${version}`,
    );
  }
  const identity = `${kind.group}/${kind.version}, Kind=${textOf(applied["kind"])}`;
  if (applied["kind"] !== kind.kind) throw badRequest(`invalid object type: ${identity}`);
  const { metadata } = applied;
  if (isJsonObject(metadata) && isJsonList(metadata["managedFields"])) {
    throw badRequest("metadata.managedFields must be nil");
  }
  const checker = new Checker();
  checker.value(applySchemaOf(kind), applied);
  if (checker.problems.length === 0) return;
  const namespace = isJsonObject(metadata) ? textOf(metadata["namespace"]) : "";
  const text =
    checker.problems.length === 1 ? checker.problems.join() : `errors:\n  ${checker.problems.join("\n  ")}`;
  throw badRequest(`failed to create typed patch object (${namespace}/${name}; ${identity}): ${text}`);
}

class Checker {
  readonly problems: string[] = [];
  readonly #path: PathElement[] = [];

  value(schema: ApplySchema | undefined, value: Json): void {
    if (schema === undefined) this.#report("field not declared in schema");
    else if (value === null) return;
    else if (schema.kind === "list") this.#list(schema, value);
    else if (schema.kind !== "scalar") this.#members(schema, value);
    else if (typeof value === "object" && !schema.isOpaque) {
      this.#report(`expected a scalar, got ${describeJson(value)}`);
    }
  }

  #members(schema: Extract<ApplySchema, { kind: "struct" | "map" }>, value: Json): void {
    if (!isJsonObject(value)) {
      this.#report(`expected map, got ${describeJson(value)}`);
      return;
    }
    for (const [name, member] of Object.entries(value)) {
      if (member === undefined) continue;
      const child = schema.kind === "struct" ? schema.field(name) : schema.element;
      this.#at(fieldElement(name), () => this.value(child, member));
    }
  }

  #list(schema: ListSchema, value: Json): void {
    if (!isJsonList(value)) {
      this.#report(`expected list, got ${describeJson(value)}`);
      return;
    }
    const seen = new Set<PathElement>();
    for (const [index, item] of value.entries()) {
      if (schema.isAtomic) {
        this.#at(`i:${index}` as PathElement, () => this.value(schema.element, item));
        continue;
      }
      const element = elementOf(schema, item);
      if (element === undefined) this.#report(`element ${index}: ${missingKey(schema)}`);
      else if (seen.has(element)) this.#report(`duplicate entries for key ${describePath([element])}`);
      else this.#at(element, () => this.value(schema.element, item));
      if (element !== undefined) seen.add(element);
    }
  }

  #report(problem: string): void {
    if (this.problems.length >= PROBLEMS_MAX) return;
    this.problems.push(this.#path.length === 0 ? problem : `${describePath(this.#path)}: ${problem}`);
  }

  #at(element: PathElement, check: () => void): void {
    this.#path.push(element);
    check();
    this.#path.pop();
  }
}

function missingKey({ keys }: ListSchema): string {
  if (keys.length === 0) return "associative list without keys has an element that is no scalar";
  const names = keys.map(({ name }) => JSON.stringify(name)).join(" ");
  return `associative list with keys has an element that omits all key fields [${names}] (and doesn't have default values for any key fields)`;
}

function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}
