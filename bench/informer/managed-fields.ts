import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";

/** What server-side apply keeps of who wrote which field: in a real cluster a third to a half of every object. */
export function managedBy(
  manager: string,
  written: object,
  { apiVersion = "v1", operation = "Update", subresource }: Partial<ManagedFieldsEntry> = {},
): ManagedFieldsEntry {
  return {
    manager,
    operation,
    apiVersion,
    time: "2025-03-01T10:20:30Z",
    fieldsType: "FieldsV1",
    fieldsV1: fieldsOf(written),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

/** Every field as `f:name`, items of lists by their key as `k:{...}` or their value as `v:...`, other lists as a whole. */
function fieldsOf(value: unknown): object {
  if (Array.isArray(value)) return listOf(value);
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [`f:${name}`, fieldsOf(field)]));
}

/** Merge keys in the order in which the API would choose them. */
const MERGE_KEYS = ["uid", "name", "mountPath", "containerPort", "type", "ip"] as const;

function listOf(items: readonly unknown[]): object {
  const fields: Record<string, object> = { ".": {} };
  for (const item of items) {
    if (typeof item === "string") {
      fields[`v:${JSON.stringify(item)}`] = {};
      continue;
    }
    if (typeof item !== "object" || item === null) return {};
    const key = MERGE_KEYS.find((name) => name in item);
    if (key === undefined) return {};
    const value = (item as Record<string, unknown>)[key];
    fields[`k:${JSON.stringify({ [key]: value })}`] = { ".": {}, ...fieldsOf(item) };
  }
  return fields;
}
