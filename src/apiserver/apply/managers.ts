import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { apiVersionOf } from "../../kube/object.ts";
import { isJsonList, isJsonObject, type JsonObject } from "../../kube/patch/json.ts";
import type { Kind } from "../kinds.ts";
import { toTimestamp, type ApiObject } from "../objects.ts";
import { applySchemaOf } from "./apply-schema.ts";
import { compareObjects, ignoring, type Comparison } from "./compare.ts";
import { difference, EMPTY, isEmpty, union, type FieldSet } from "./field-set.ts";
import {
  decodeManagers,
  encodeManagers,
  managerId,
  NO_MANAGERS,
  secondsOf,
  withFields,
  type Manager,
  type ManagerId,
  type Managers,
} from "./managed-fields.ts";
import { resetFieldsOf } from "./reset-fields.ts";
import { translate } from "./spellings.ts";

/** Managers by ordinary writes that an object remembers; older ones are lumped together. As in the real server. */
const UPDATE_MANAGERS_MAX = 10;
const ANCIENT = "ancient-changes";

/** What apply and tracking need to know of a kind. */
export type TrackedKind = Pick<Kind, "group" | "version" | "kind" | "plural" | "namespaced" | "status">;

export interface TrackedWrite {
  readonly kind: TrackedKind;
  /** Undefined for a create. */
  readonly before: ApiObject | undefined;
  /**
   * What the client wants, decoded and defaulted, but before admission and the server's own changes: those are nobody's.
   * The managedFields in it are a wish too: entries replace the stored ones, `[]` and `[{}]` forget them all.
   */
  readonly after: ApiObject;
  readonly manager: string;
  readonly subresource?: string | undefined;
  readonly now: Date;
}

/**
 * managedFields after a POST, a PUT or a patch that is no apply. What appeared or changed is the writer's alone,
 * what went is nobody's.
 *
 * An object that nobody manages stays so until it is applied to: only creates begin to track.
 */
export function trackUpdate(write: TrackedWrite): readonly ManagedFieldsEntry[] | undefined {
  const { kind, before, after, subresource } = write;
  const managers = wantedManagers(write);
  if (managers.size === 0 && before !== undefined) return undefined;
  const comparison = compareObjects(applySchemaOf(kind), toJson(before ?? {}), toJson(after));
  const change = ignoring(comparison, resetFieldsOf(kind, subresource));
  if (isUnchanged(change)) return encodeManagers(managers);
  return encodeManagers(capUpdates(recordUpdate(disown(kind, managers, change), change, write)));
}

/** What everyone keeps after a change. Who has nothing left, or wrote in words we do not know, is forgotten. */
export function disown(
  kind: TrackedKind,
  managers: Managers,
  change: Comparison,
  { except }: { except?: ManagerId } = {},
): Managers {
  const all = union(union(change.added, change.modified), change.removed);
  const kept = new Map<ManagerId, Manager>();
  for (const [id, manager] of managers) {
    const lost = id === except ? EMPTY : toWordsOf(manager, kind, all);
    const fields = lost === undefined ? EMPTY : difference(manager.fields, lost);
    if (!isEmpty(fields)) kept.set(id, withFields(manager, fields));
  }
  return kept;
}

/** Fields of an object in the words of a manager, who may have written in another version of the API. */
export function toWordsOf(
  { apiVersion }: Manager,
  kind: TrackedKind,
  fields: FieldSet,
): FieldSet | undefined {
  return translate(fields, { kind: kind.kind, from: apiVersionOf(kind), to: apiVersion });
}

/** The entry of the writer, joined with what it had before. */
export function recordUpdate(
  managers: Managers,
  { added, modified }: Comparison,
  { kind, manager, subresource, now }: Pick<TrackedWrite, "kind" | "manager" | "subresource" | "now">,
): Managers {
  const taken = union(added, modified);
  if (isEmpty(taken)) return managers;
  const header = { manager, operation: "Update" as const, apiVersion: apiVersionOf(kind), subresource };
  const id = managerId(header);
  const fields: FieldSet = union(managers.get(id)?.fields ?? EMPTY, taken);
  return new Map([...managers, [id, { ...header, time: toTimestamp(now), fields }]]);
}

/** Those that the client names, if it names any that can be read; else those that are stored. */
function wantedManagers({ before, after, subresource }: TrackedWrite): Managers {
  const stored = () => decodeManagers(before?.metadata.managedFields) ?? NO_MANAGERS;
  const wanted = after.metadata.managedFields;
  if (subresource !== undefined || wanted === undefined) return stored();
  if (isReset(wanted)) return NO_MANAGERS;
  const decoded = decodeManagers(wanted);
  if (decoded === undefined || decoded.size === 0) return stored();
  // Whatever order a client spells them in, they are stored in ours.
  return new Map([...decoded].map(([id, manager]) => [id, { ...manager, encoded: undefined }]));
}

function isReset(wanted: unknown): boolean {
  if (!isJsonList(wanted)) return false;
  const [first] = wanted;
  return (
    wanted.length === 0 || (wanted.length === 1 && isJsonObject(first) && Object.keys(first).length === 0)
  );
}

/** The oldest become one entry for each version, until there are few enough. */
function capUpdates(managers: Managers): Managers {
  const updates = [...managers].filter(([, { operation }]) => operation === "Update");
  if (updates.length <= UPDATE_MANAGERS_MAX) return managers;
  updates.sort(([a, left], [b, right]) => secondsOf(left) - secondsOf(right) || (a < b ? -1 : 1));
  const capped = new Map(managers);
  const oldest = new Map<string, ManagerId>();
  for (const [id, { apiVersion }] of updates) {
    if (countUpdates(capped) <= UPDATE_MANAGERS_MAX) break;
    const first = oldest.get(apiVersion);
    oldest.set(apiVersion, first === undefined ? id : lump(capped, first, id));
  }
  return capped;
}

/** Puts two managers, the older one first, into the entry for ancient changes and says which that is. */
function lump(managers: Map<ManagerId, Manager>, first: ManagerId, second: ManagerId): ManagerId {
  const younger = managers.get(second);
  const header = {
    manager: ANCIENT,
    operation: "Update" as const,
    apiVersion: younger?.apiVersion ?? "",
    subresource: undefined,
  };
  const bucket = managerId(header);
  const fields = [bucket, first, second].map((id) => managers.get(id)?.fields ?? EMPTY).reduce(union);
  managers.delete(first);
  managers.delete(second);
  managers.set(bucket, { ...header, time: younger?.time, fields });
  return bucket;
}

function countUpdates(managers: Managers): number {
  return [...managers.values()].filter(({ operation }) => operation === "Update").length;
}

function isUnchanged({ added, modified, removed }: Comparison): boolean {
  return isEmpty(added) && isEmpty(modified) && isEmpty(removed);
}

function toJson(object: object): JsonObject {
  return object as JsonObject;
}
