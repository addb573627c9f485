import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { jsonEqual } from "../kube/patch/json.ts";
import { admissionDeps } from "./admission.ts";
import { isHeld } from "./deletion.ts";
import type { Kind } from "./kinds.ts";
import { toTimestamp, type ApiObject } from "./objects.ts";
import type { Requester } from "./policies/request.ts";
import type { PodPart, VerbDeps } from "./request.ts";
import { decideCreate, decideUpdate } from "./rules/decide.ts";

/**
 * What the server makes of an object before it is stored: the fields of metadata that are its own to set and
 * the generation here, everything that differs by kind in `rules/`. Objects are in short form.
 */

/** The object that a create stores; throws what is wrong with it. */
export function prepareCreate(
  deps: VerbDeps,
  kind: Kind,
  body: ApiObject,
  server: { readonly name: string; readonly namespace: string | undefined; readonly uid: string },
  requester?: Requester,
): ApiObject {
  const now = deps.clock.wall();
  const { namespace: _namespace, ...metadata } = clientMetadata(body.metadata);
  const object: ApiObject = {
    ...body,
    metadata: {
      ...metadata,
      name: server.name,
      ...(server.namespace === undefined ? {} : { namespace: server.namespace }),
      uid: server.uid,
      creationTimestamp: toTimestamp(now),
      ...(kind.generation === "from-1" ? { generation: 1 } : {}),
    },
  };
  return decideCreate(admissionDeps(deps, { kind, requester }), { kind, object, now });
}

/** The object that replaces `current` when a client wants `desired`; throws what is wrong with that. */
export function prepareUpdate(
  deps: VerbDeps,
  kind: Kind,
  {
    current,
    desired,
    subresource,
    part,
    requester,
  }: {
    current: ApiObject;
    desired: ApiObject;
    subresource: "status" | undefined;
    part?: PodPart | undefined;
    requester?: Requester | undefined;
  },
): ApiObject {
  const object = { ...desired, metadata: updateMetadata(current, desired) };
  const now = deps.clock.wall();
  const update = { kind, object, old: current, subresource, part, now };
  const decided = decideUpdate(admissionDeps(deps, { kind, requester }), update);
  return subresource === "status" ? decided : countGeneration(kind, current, decided);
}

/** A deleting object with nothing left to wait for goes in the same write that made it so. */
export function isFinished(kind: Kind, object: ApiObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata;
  if (deletionTimestamp === undefined || isHeld(kind, object)) return false;
  // A Pod goes when its node has let go of it.
  return kind.kind !== "Pod" || deletionGracePeriodSeconds === 0;
}

/** Without what only the server sets; managedFields are worked out from who wrote what. */
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

function updateMetadata(current: ApiObject, desired: ApiObject): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, generation } = current.metadata;
  const { deletionTimestamp, deletionGracePeriodSeconds } = current.metadata;
  return {
    ...clientMetadata(desired.metadata),
    ...defined({ name, namespace, uid, resourceVersion, creationTimestamp, generation }),
    ...defined({ deletionTimestamp, deletionGracePeriodSeconds }),
  };
}

function countGeneration(kind: Kind, current: ApiObject, next: ApiObject): ApiObject {
  if (kind.generation === "none" || isSameContent(current, next)) return next;
  return { ...next, metadata: { ...next.metadata, generation: (current.metadata.generation ?? 0) + 1 } };
}

/** Of most kinds the content is the spec; an EndpointSlice or a PodTemplate has its own at the top. */
function isSameContent(
  { metadata: _a, status: _b, ...current }: ApiObject,
  { metadata: _c, status: _d, ...next }: ApiObject,
): boolean {
  return jsonEqual(current, next);
}

/** Absent stays absent: a member that is undefined would count as a change. */
function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
