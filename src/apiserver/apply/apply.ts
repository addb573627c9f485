import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { apiVersionOf } from "../../kube/object.ts";
import { isJsonObject, jsonEqual, type JsonObject } from "../../kube/patch/json.ts";
import { conflict } from "../errors.ts";
import { toTimestamp, type ApiObject } from "../objects.ts";
import { applySchemaOf } from "./apply-schema.ts";
import { checkApplied } from "./check-applied.ts";
import { compareObjects, ignoring, type Comparison } from "./compare.ts";
import { conflictsWith, type Conflict } from "./conflicts.ts";
import { extractFields } from "./extract.ts";
import {
  deepDifference,
  difference,
  EMPTY,
  intersection,
  isEmpty,
  union,
  type FieldSet,
} from "./field-set.ts";
import { fieldsLastApplied, withLastApplied } from "./last-applied.ts";
import {
  decodeManagers,
  encodeManagers,
  managerId,
  NO_MANAGERS,
  withManagedFields,
  type Manager,
  type ManagerId,
  type Managers,
} from "./managed-fields.ts";
import { disown, recordUpdate, toWordsOf, type TrackedKind } from "./managers.ts";
import { mergeObjects } from "./merge.ts";
import { pruneFields } from "./prune.ts";
import { resetFieldsOf } from "./reset-fields.ts";
import { translate } from "./spellings.ts";

/** Owns what an object had before the first apply, if nobody did. */
const BEFORE_FIRST_APPLY = "before-first-apply";

export interface ApplyRequest {
  readonly kind: TrackedKind;
  /** By the path of the request; for messages. */
  readonly name: string;
  /** The stored object; undefined if there is none, and then the apply creates it. */
  readonly live: ApiObject | undefined;
  /** The body, as `parseApplyBody` returns it. */
  readonly applied: JsonObject;
  readonly manager: string;
  /** Take fields from whoever owns them, instead of reporting a conflict. */
  readonly force: boolean;
  readonly subresource?: string | undefined;
  readonly now: Date;
}

export type ApplyOutcome =
  | {
      readonly kind: "applied";
      /**
       * What the object should become, without managedFields. It is still to be decoded (members that are null go, types
       * are checked) and takes the way of every other write from there: defaults, admission, validation.
       */
      readonly object: JsonObject;
      /** What `metadata.managedFields` should become. */
      readonly managedFields: readonly ManagedFieldsEntry[] | undefined;
      readonly created: boolean;
    }
  | { readonly kind: "conflict"; readonly conflicts: readonly Conflict[] };

/**
 * Server-side apply (spec/apiserver.md, section 10.5): the manager says all it wants to say about an object, and gets
 * it, unless somebody else said otherwise. What it said before and does not repeat is taken back.
 *
 * Applying the same twice changes nothing: the second outcome is the live object with its managedFields. A body that
 * cannot be applied is 400, and a uid for an object that does not exist is 409, both thrown.
 */
export function applyPatch(request: ApplyRequest): ApplyOutcome {
  checkApplied(request.kind, request.applied, request.name);
  if (request.live === undefined) checkNoUid(request);
  const plan = planApply(request);
  if (plan.losses.length === 0 || request.force) return finish(request, plan);
  const allowed = fieldsLastApplied(request.kind, plan.live, request.manager);
  const refused = plan.losses.flatMap(([manager, fields]): [Manager, FieldSet][] => {
    const rest = difference(fields, allowed);
    return isEmpty(rest) ? [] : [[manager, rest]];
  });
  if (refused.length === 0) return finish(request, plan);
  return { kind: "conflict", conflicts: conflictsWith(refused) };
}

/** Whoever names a uid means an object that exists; another of the same name is not it. */
function checkNoUid({ kind, name, applied: { metadata } }: ApplyRequest): void {
  const uid = isJsonObject(metadata) ? metadata["uid"] : undefined;
  if (typeof uid !== "string" || uid === "") return;
  throw conflict(
    kind,
    name,
    `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
  );
}

interface Plan {
  readonly live: ApiObject;
  readonly object: JsonObject;
  /** With the applier's new entry, and the others as they are. */
  readonly managers: Managers;
  readonly applier: Manager;
  readonly change: Comparison;
  /** Who would lose what: fields that somebody else owns and that get another value. */
  readonly losses: readonly (readonly [Manager, FieldSet])[];
}

function planApply(request: ApplyRequest): Plan {
  const { kind, applied, subresource } = request;
  const schema = applySchemaOf(kind);
  const reset = resetFieldsOf(kind, subresource);
  const live = withManagedFields(request.live ?? { metadata: {} }, undefined);
  const known = knownManagers(request, live);
  const merged = mergeObjects(schema, toJson(live), applied);
  const fields = deepDifference(extractFields(schema, applied), reset);
  const { id, applier, last } = applierOf(request, known, fields);
  const managers = new Map([...known, [id, applier]]);
  const object = isEmpty(difference(last, fields))
    ? merged
    : pruneFields(schema, merged, { before: last, owned: ownedBy(kind, managers) });
  const change = ignoring(compareObjects(schema, toJson(live), object), reset);
  return { live, object, managers, applier, change, losses: lossesOf(kind, managers, change, id) };
}

function finish(request: ApplyRequest, { live, object, managers, applier, change }: Plan): ApplyOutcome {
  const { kind, now } = request;
  const id = managerId(applier);
  const kept = new Map(disown(kind, managers, change, { except: id }));
  // Values that were all in place leave the time as it is, absent for one who applies for the first time.
  const isChanged = !jsonEqual(live, object);
  if (isChanged && kept.has(id)) kept.set(id, { ...applier, time: toTimestamp(now), encoded: undefined });
  return {
    kind: "applied",
    object: withLastApplied(object, request.applied, request.manager),
    managedFields: encodeManagers(kept),
    created: request.live === undefined,
  };
}

/** Those that are stored. What an object without any has is put down to a time before the first apply. */
function knownManagers({ kind, live, subresource, now }: ApplyRequest, bare: ApiObject): Managers {
  const stored = decodeManagers(live?.metadata.managedFields) ?? NO_MANAGERS;
  if (stored.size > 0 || live === undefined) return stored;
  const all = ignoring(
    compareObjects(applySchemaOf(kind), {}, toJson(bare)),
    resetFieldsOf(kind, subresource),
  );
  return recordUpdate(NO_MANAGERS, all, { kind, manager: BEFORE_FIRST_APPLY, subresource, now });
}

function applierOf(
  { kind, manager, subresource }: ApplyRequest,
  known: Managers,
  fields: FieldSet,
): { id: ManagerId; applier: Manager; last: FieldSet } {
  const header = { manager, operation: "Apply" as const, apiVersion: apiVersionOf(kind), subresource };
  const id = managerId(header);
  const before = known.get(id);
  const last = before === undefined ? EMPTY : fieldsOf(before, kind);
  return { id, last, applier: { ...header, time: before?.time, fields } };
}

/** What anybody owns. */
function ownedBy(kind: TrackedKind, managers: Managers): FieldSet {
  return [...managers.values()].map((manager) => fieldsOf(manager, kind)).reduce(union, EMPTY);
}

/** What a manager owns, in the words of the version in which we apply. */
function fieldsOf({ apiVersion, fields }: Manager, kind: TrackedKind): FieldSet {
  return translate(fields, { kind: kind.kind, from: apiVersion, to: apiVersionOf(kind) }) ?? EMPTY;
}

function lossesOf(
  kind: TrackedKind,
  managers: Managers,
  { added, modified }: Comparison,
  applier: ManagerId,
): (readonly [Manager, FieldSet])[] {
  const taken = union(added, modified);
  return [...managers].flatMap(([id, manager]) => {
    const lost =
      id === applier ? EMPTY : intersection(manager.fields, toWordsOf(manager, kind, taken) ?? EMPTY);
    return isEmpty(lost) ? [] : [[manager, lost] as const];
  });
}

function toJson(object: ApiObject): JsonObject {
  return object as unknown as JsonObject;
}
