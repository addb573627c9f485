import { evaluationError } from "../../cel/errors.ts";
import { toJson } from "../../cel/json.ts";
import { isList, MapValue, ObjectValue, type Value } from "../../cel/values.ts";
import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { applySchemaOf, type ApplySchema } from "../apply/apply-schema.ts";
import { mergeObjects } from "../apply/merge.ts";
import { decodeFields } from "../schema/decode.ts";
import { knownSchema, type GroupVersionKind } from "../schema/schema.ts";

/**
 * An object of fields that should be so, merged as server-side apply would: lists with keys element by element. Nobody
 * comes to own what it sets. A list or map that is one value to apply may not be touched: it would be replaced whole,
 * and what others put there would be gone.
 */
export function applyConfiguration(
  kind: GroupVersionKind,
  object: JsonObject,
  configuration: Value,
): JsonObject {
  if (!(configuration instanceof ObjectValue)) throw evaluationError("must evaluate to Object");
  checkTypeNames(configuration, "Object");
  const patch = toJson(configuration) as JsonObject;
  const { unknown } = decodeFields(knownSchema(kind), patch);
  if (unknown.length > 0) {
    throw evaluationError(`error applying patch: .${unknown[0] ?? ""}: field not declared in schema`);
  }
  const schema = applySchemaOf(kind);
  const atomics = findAtomics(schema, "", patch);
  if (atomics.length > 0) {
    throw evaluationError(
      `error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(", ")}`,
    );
  }
  return mergeObjects(schema, object, patch);
}

/** `Object.spec{...}` belongs at the field `spec` and nowhere else. */
function checkTypeNames(value: Value, path: string): void {
  if (isList(value)) for (const item of value) checkTypeNames(item, path);
  if (value instanceof MapValue) for (const key of value.keys()) checkTypeNames(value.get(key) ?? null, path);
  if (!(value instanceof ObjectValue)) return;
  if (value.type !== path) {
    throw evaluationError(
      `type mismatch: unexpected type name "${value.type}", expected "${path}", which matches field name path from root Object type`,
    );
  }
  for (const [name, field] of value.fields) checkTypeNames(field, `${path}.${name}`);
}

function findAtomics(schema: ApplySchema | undefined, path: string, value: Json): string[] {
  if (schema === undefined || schema.kind === "scalar") return [];
  if (isJsonList(value)) {
    if (schema.kind !== "list") return [];
    const own = schema.isAtomic ? [path] : [];
    return [
      ...own,
      ...value.flatMap((item, index) => findAtomics(schema.element, `${path}[${index}]`, item)),
    ];
  }
  if (!isJsonObject(value) || schema.kind === "list") return [];
  const own = schema.isAtomic ? [path] : [];
  const member = (name: string) => (schema.kind === "struct" ? schema.field(name) : schema.element);
  return [
    ...own,
    ...Object.entries(value).flatMap(([name, field]) =>
      field === undefined ? [] : findAtomics(member(name), `${path}.${name}`, field),
    ),
  ];
}
