import type { PatchSchema } from "../../kube/patch/patch-schema.ts";
import { schemaOf, type FieldSchema, type GroupVersionKind, type ObjectSchema } from "./schema.ts";

/**
 * What a strategic merge patch must know about a kind, from the field table. Undefined for the snapshot
 * kinds: they are custom resources, for which such patches are 415.
 */
export function patchSchemaOf(kind: GroupVersionKind): PatchSchema | undefined {
  const schema = schemaOf(kind);
  return schema === undefined || schema.isCustom ? undefined : objectPatchSchemaOf(schema);
}

/** One for a definition, made when it is first reached and kept: there are 258 at most. */
const cache = new Map<ObjectSchema, PatchSchema>();

function objectPatchSchemaOf(schema: ObjectSchema): PatchSchema {
  let found = cache.get(schema);
  if (found === undefined) {
    found = { strategy: "merge", field: memberSchemas(schema) };
    cache.set(schema, found);
  }
  return found;
}

function memberSchemas(schema: ObjectSchema): PatchSchema["field"] {
  const members = new Map<string, PatchSchema | undefined>();
  return (name) => {
    if (!members.has(name)) {
      const field = schema.field(name);
      if (field === undefined) return undefined;
      members.set(name, fieldPatchSchemaOf(field));
    }
    return members.get(name);
  };
}

/** Undefined for scalars and maps of scalars, which have nothing to tell. */
function fieldPatchSchemaOf({ type, patchStrategies, patchMergeKey }: FieldSchema): PatchSchema | undefined {
  const retainKeys = patchStrategies.includes("retainKeys") ? { retainKeys: true } : {};
  if (type.kind === "object") return { ...objectPatchSchemaOf(type.schema), ...retainKeys };
  if (type.kind !== "list" || !patchStrategies.includes("merge")) return undefined;
  const { element } = type;
  const elements = element.kind === "object" ? objectPatchSchemaOf(element.schema) : undefined;
  return {
    strategy: "merge",
    ...(patchMergeKey === undefined ? {} : { mergeKey: patchMergeKey }),
    ...retainKeys,
    field: (name) => elements?.field(name),
  };
}
