import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { jsonEqual } from "../../kube/patch/json.ts";
import type { ApiObject } from "../objects.ts";
import { fromFieldsV1, isEmpty, toFieldsV1, type FieldSet } from "./field-set.ts";

/** Who owns which fields: one entry of `metadata.managedFields`. */
export interface Manager {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string | undefined;
  /** Of the last write that gave it something; absent for an applier whose every apply found its values in place. */
  readonly time: string | undefined;
  readonly fields: FieldSet;
  /** The entry this was read from, while it still says the same. */
  readonly encoded?: ManagedFieldsEntry | undefined;
}

/** What tells two managers apart; an applier stays the same across versions of the API. */
export type ManagerId = string & { readonly __brand: "ManagerId" };

export type Managers = ReadonlyMap<ManagerId, Manager>;

export const NO_MANAGERS: Managers = new Map();

export function managerId({
  manager,
  operation,
  apiVersion,
  subresource,
}: Pick<Manager, "manager" | "operation" | "apiVersion" | "subresource">): ManagerId {
  const version = operation === "Apply" ? undefined : apiVersion;
  return JSON.stringify({ manager, operation, apiVersion: version, subresource }) as ManagerId;
}

/** Undefined if any entry is not as this server would have written it: then none of them can be trusted. */
export function decodeManagers(entries: readonly ManagedFieldsEntry[] = []): Managers | undefined {
  const managers = new Map<ManagerId, Manager>();
  for (const entry of entries) {
    const manager = decodeManager(entry);
    if (manager === undefined) return undefined;
    managers.set(managerId(manager), manager);
  }
  return managers;
}

function decodeManager(entry: ManagedFieldsEntry): Manager | undefined {
  const { manager = "", operation, apiVersion = "", subresource = "", fieldsType, time } = entry;
  if ((operation !== "Apply" && operation !== "Update") || apiVersion === "" || fieldsType !== "FieldsV1") {
    return undefined;
  }
  const fields = fromFieldsV1(entry.fieldsV1 ?? {});
  if (fields === undefined) return undefined;
  return {
    manager,
    operation,
    apiVersion,
    subresource: subresource === "" ? undefined : subresource,
    time,
    fields,
    encoded: entry,
  };
}

/** In the order of the real server; undefined where nobody manages anything, for then the field is absent. */
export function encodeManagers(managers: Managers): readonly ManagedFieldsEntry[] | undefined {
  const kept = [...managers.values()].filter(({ fields }) => !isEmpty(fields));
  if (kept.length === 0) return undefined;
  return kept.sort(compareManagers).map((manager) => manager.encoded ?? encodeManager(manager));
}

function encodeManager({
  manager,
  operation,
  apiVersion,
  subresource,
  time,
  fields,
}: Manager): ManagedFieldsEntry {
  return {
    manager,
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: "FieldsV1",
    fieldsV1: toFieldsV1(fields),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

/** Appliers first, then by age, name, version and subresource. */
function compareManagers(a: Manager, b: Manager): number {
  return (
    compareTexts(a.operation, b.operation) ||
    secondsOf(a) - secondsOf(b) ||
    compareTexts(a.manager, b.manager) ||
    compareTexts(a.apiVersion, b.apiVersion) ||
    compareTexts(a.subresource ?? "", b.subresource ?? "")
  );
}

export function secondsOf({ time }: Manager): number {
  const ms = time === undefined ? 0 : Date.parse(time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}

export function withFields(manager: Manager, fields: FieldSet): Manager {
  return fields === manager.fields ? manager : { ...manager, fields, encoded: undefined };
}

export function withManagedFields(
  object: ApiObject,
  managedFields: readonly ManagedFieldsEntry[] | undefined,
): ApiObject {
  const { managedFields: _managedFields, ...metadata } = object.metadata;
  if (managedFields === undefined) return { ...object, metadata };
  return { ...object, metadata: { ...metadata, managedFields: [...managedFields] } };
}

/**
 * Whether a write leaves everything as it is but the times in managedFields. Such a write is none: a manager that sets
 * what is set already, or spells a quantity differently, must not wake up every watcher.
 */
export function isSameButTimes(current: ApiObject, next: ApiObject): boolean {
  return (
    jsonEqual(withoutTimes(current), withoutTimes(next)) &&
    jsonEqual(withManagedFields(current, undefined), withManagedFields(next, undefined))
  );
}

function withoutTimes({ metadata }: ApiObject): unknown {
  return (metadata.managedFields ?? []).map(({ time: _time, ...entry }) => entry);
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
