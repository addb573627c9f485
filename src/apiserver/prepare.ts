import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { jsonEqual } from "../kube/patch/json.ts";
import { applyDefaults } from "./defaults.ts";
import { invalid, type FieldProblem } from "./errors.ts";
import type { Kind } from "./kinds.ts";
import { nameProblem } from "./names.ts";
import { toTimestamp, type ApiObject } from "./objects.ts";

/**
 * What the server makes of an object before it is stored: the fields that are its own to set, the
 * split between spec and status, defaults, generation, and the checks that hold for every kind.
 * All of it is pure.
 */

/** The object that a create stores. */
export function prepareCreate(
  kind: Kind,
  body: ApiObject,
  server: {
    readonly name: string;
    readonly namespace: string | undefined;
    readonly uid: string;
    readonly now: Date;
  },
): ApiObject {
  const { namespace: _namespace, ...metadata } = clientMetadata(body.metadata);
  // Status belongs to the controllers: whoever creates an object cannot claim it is already attached.
  const { status: _status, ...withoutStatus } = body;
  const object: ApiObject = {
    ...(kind.status === "none" ? body : withoutStatus),
    metadata: {
      ...metadata,
      name: server.name,
      ...(server.namespace === undefined ? {} : { namespace: server.namespace }),
      uid: server.uid,
      creationTimestamp: toTimestamp(server.now),
      ...(kind.generation === "from-1" ? { generation: 1 } : {}),
    },
  };
  const problem = nameProblem(kind, server.name);
  if (problem !== undefined) throw invalid(kind, server.name, [problem]);
  return applyDefaults(kind, object);
}

/** The object that replaces `current` when a client wants `desired`. */
export function prepareUpdate(
  kind: Kind,
  {
    current,
    desired,
    subresource,
  }: { current: ApiObject; desired: ApiObject; subresource: "status" | undefined },
): ApiObject {
  const metadata = updateMetadata(kind, { current, desired, subresource });
  checkFinalizers(kind, current, metadata);
  if (subresource === "status") return withStatus({ ...current, metadata }, desired["status"]);
  const taken = kind.status === "none" ? desired : withStatus(desired, current["status"]);
  return countGeneration(kind, current, applyDefaults(kind, { ...taken, metadata }));
}

/** A deleting object with nothing left to wait for goes in the same write that made it so. */
export function isFinished(kind: Kind, { metadata }: ApiObject): boolean {
  if (metadata.deletionTimestamp === undefined || hasFinalizers(metadata)) return false;
  // A Namespace goes when its content is gone, a Pod when its node has let go of it.
  if (kind.kind === "Namespace") return false;
  return kind.kind !== "Pod" || metadata.deletionGracePeriodSeconds === 0;
}

export function hasFinalizers({ finalizers }: ObjectMeta): boolean {
  return finalizers !== undefined && finalizers.length > 0;
}

/** Without what only the server sets. managedFields are not tracked here, so none are shown. */
function clientMetadata(metadata: ObjectMeta): ObjectMeta {
  const {
    uid: _uid,
    resourceVersion: _resourceVersion,
    creationTimestamp: _creationTimestamp,
    deletionTimestamp: _deletionTimestamp,
    deletionGracePeriodSeconds: _grace,
    generation: _generation,
    selfLink: _selfLink,
    managedFields: _managedFields,
    ...rest
  } = metadata;
  return rest;
}

function updateMetadata(
  kind: Kind,
  {
    current,
    desired,
    subresource,
  }: { current: ApiObject; desired: ApiObject; subresource: "status" | undefined },
): ObjectMeta {
  if (subresource === "status" && kind.status === "restore") return current.metadata;
  const { name, namespace, uid, resourceVersion, creationTimestamp, generation } = current.metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds, ownerReferences } = current.metadata;
  const keepsOwners = subresource === "status" && kind.kind === "Pod";
  const { ownerReferences: wantedOwners, ...wanted } = clientMetadata(desired.metadata);
  return {
    ...wanted,
    ...defined({ ownerReferences: keepsOwners ? ownerReferences : wantedOwners }),
    ...defined({ name, namespace, uid, resourceVersion, creationTimestamp, generation }),
    ...defined({ deletionTimestamp, deletionGracePeriodSeconds }),
  };
}

function checkFinalizers(kind: Kind, current: ApiObject, next: ObjectMeta): void {
  if (current.metadata.deletionTimestamp === undefined) return;
  const before = current.metadata.finalizers ?? [];
  const added = (next.finalizers ?? []).filter((finalizer) => !before.includes(finalizer));
  if (added.length === 0) return;
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
  const problem: FieldProblem = {
    field: "metadata.finalizers",
    reason: "FieldValueForbidden",
    message: `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`,
  };
  throw invalid(kind, current.metadata.name ?? "", [problem]);
}

function countGeneration(kind: Kind, current: ApiObject, next: ApiObject): ApiObject {
  if (kind.generation === "none" || jsonEqual(current["spec"], next["spec"])) return next;
  return { ...next, metadata: { ...next.metadata, generation: (current.metadata.generation ?? 0) + 1 } };
}

function withStatus(object: ApiObject, status: unknown): ApiObject {
  const { status: _status, ...rest } = object;
  return { ...rest, metadata: object.metadata, ...(status === undefined ? {} : { status }) };
}

/** Absent stays absent: a member that is undefined would count as a change. */
function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
