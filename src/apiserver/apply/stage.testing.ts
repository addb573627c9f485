import { applyJsonPatch } from "../../kube/patch/json-patch.ts";
import type { JsonObject } from "../../kube/patch/json.ts";
import { applyMergePatch } from "../../kube/patch/merge-patch.ts";
import { applyStrategicPatch } from "../../kube/patch/strategic-patch.ts";
import { StatusError } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { parseRoute } from "../routes.ts";
import { decodeBody, decodePatched } from "../schema/body.ts";
import { completeObject } from "../schema/complete.ts";
import { patchSchemaOf } from "../schema/patch-schema.ts";
import { applyPatch } from "./apply.ts";
import { parseApplyBody } from "./apply-body.ts";
import { parseApplyOptions, refuseForce } from "./apply-options.ts";
import { applyConflict } from "./conflicts.ts";
import { isSameButTimes, withManagedFields } from "./managed-fields.ts";
import { managerName } from "./manager-name.ts";
import { trackUpdate } from "./managers.ts";

/** For tests: as much of the verbs as shows where tracking and apply stand in them. */
export interface StageRequest {
  readonly method: string;
  readonly path: string;
  readonly type?: string | undefined;
  readonly body: unknown;
  readonly now?: Date;
}

export interface StageAnswer {
  readonly status: number;
  readonly body: unknown;
}

interface Target {
  readonly kind: Kind;
  readonly key: string;
  readonly name: string;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
}

/** What a few kinds get where their creator says nothing; the rest of defaulting is tested elsewhere. */
const DEFAULTS: Readonly<Record<string, JsonObject>> = {
  PersistentVolumeClaim: { spec: { volumeMode: "Filesystem" } },
  StorageClass: { reclaimPolicy: "Delete", volumeBindingMode: "Immediate" },
  CSIDriver: {
    spec: {
      attachRequired: true,
      fsGroupPolicy: "ReadWriteOnceWithFSType",
      podInfoOnMount: false,
      requiresRepublish: false,
      storageCapacity: false,
      volumeLifecycleModes: ["Persistent"],
    },
  },
};

/** What admission adds to a new object, after its fields have been given to their creator. */
const ADMITTED: Readonly<Record<string, JsonObject>> = {
  PersistentVolumeClaim: { metadata: { finalizers: ["kubernetes.io/pvc-protection"] } },
};

export function givenStage({ userAgent = "golden/1.0" } = {}) {
  const objects = new Map<string, ApiObject>();
  let revision = 0;

  function send(request: StageRequest): StageAnswer {
    try {
      const target = parseTarget(request);
      if (request.method === "PATCH") return patch(target, request);
      const { object } = decodeBody(target.kind, { headers: {}, body: JSON.stringify(request.body) });
      return write(target, request, withDefaults(target.kind, object));
    } catch (error) {
      if (error instanceof StatusError) return { status: error.status.code, body: error.status };
      throw error;
    }
  }

  function write(target: Target, { now = NOW }: StageRequest, after: ApiObject): StageAnswer {
    const { kind, key, subresource, query } = target;
    const before = objects.get(`${key}/${target.name || (after.metadata.name ?? "")}`);
    const manager = managerName({ fieldManager: query.get("fieldManager"), userAgent });
    const managedFields = trackUpdate({ kind, before, after, manager, subresource, now });
    return store(target, before, withManagedFields(after, managedFields));
  }

  function patch(target: Target, request: StageRequest): StageAnswer {
    const { kind, key, name, subresource, query } = target;
    const before = objects.get(`${key}/${name}`);
    const text = typeof request.body === "string" ? request.body : JSON.stringify(request.body);
    if (request.type !== "application/apply-patch+yaml") {
      refuseForce(query);
      const patched = patchWith(request, kind, before ?? { metadata: {} });
      return write(target, request, decodePatched(kind, patched).object);
    }
    const { manager, force } = parseApplyOptions(query);
    const { applied } = parseApplyBody(text);
    const outcome = applyPatch({
      kind,
      name,
      live: before,
      applied,
      manager,
      force,
      subresource,
      now: request.now ?? NOW,
    });
    if (outcome.kind === "conflict") throw applyConflict(outcome.conflicts);
    const { object } = decodePatched(kind, outcome.object);
    return store(target, before, withManagedFields(withDefaults(kind, object), outcome.managedFields));
  }

  function store(target: Target, before: ApiObject | undefined, after: ApiObject): StageAnswer {
    const { kind, key, subresource } = target;
    const name = target.name || (after.metadata.name ?? "");
    const admitted = before === undefined ? applyMergePatch(after, ADMITTED[kind.kind] ?? {}) : after;
    const fields = { before, after: admitted as unknown as ApiObject, name, subresource };
    const next = completeObject(kind, withServerFields(kind, fields));
    if (before !== undefined && isSameButTimes(before, next)) return { status: 200, body: before };
    revision++;
    const stored = { ...next, metadata: { ...next.metadata, resourceVersion: String(revision) } };
    objects.set(`${key}/${name}`, stored);
    return { status: before === undefined ? 201 : 200, body: stored };
  }

  return { send, get: (path: string) => objects.get(path), objects };
}

export const NOW = new Date("2026-11-15T18:00:01Z");

function parseTarget({ path }: StageRequest): Target {
  const [route = "", search = ""] = path.split("?");
  const parsed = parseRoute(route);
  if (parsed.kind !== "resource") throw new Error(`${path} is no resource`);
  const { resource: kind, namespace = "", name = "", subresource } = parsed;
  return { kind, key: `${kind.plural}/${namespace}`, name, subresource, query: new URLSearchParams(search) };
}

function patchWith({ type, body }: StageRequest, kind: Kind, live: ApiObject): unknown {
  if (type === "application/json-patch+json") return applyJsonPatch(live, body);
  if (type === "application/merge-patch+json") return applyMergePatch(live, body);
  const schema = patchSchemaOf(kind);
  if (schema === undefined) throw new Error(`${kind.kind} takes no strategic merge patches`);
  return applyStrategicPatch(live, body, schema);
}

function withDefaults(kind: Kind, object: ApiObject): ApiObject {
  return applyMergePatch(DEFAULTS[kind.kind] ?? {}, object) as unknown as ApiObject;
}

function withServerFields(
  kind: Kind,
  {
    before,
    after,
    name,
    subresource,
  }: { before: ApiObject | undefined; after: ApiObject; name: string; subresource: string | undefined },
): ApiObject {
  const { managedFields } = after.metadata;
  const isStatus = subresource === "status";
  const keepsMetadata = isStatus && kind.status === "restore";
  const metadata = {
    ...(keepsMetadata ? before?.metadata : after.metadata),
    name,
    uid: before?.metadata.uid ?? `uid-${name}`,
  };
  const { managedFields: _managedFields, resourceVersion: _resourceVersion, ...own } = metadata;
  const base = isStatus && before !== undefined ? before : after;
  const status = isStatus || kind.status === "none" ? after["status"] : before?.["status"];
  return {
    ...base,
    metadata: {
      ...own,
      ...(before === undefined ? {} : { resourceVersion: before.metadata.resourceVersion ?? "" }),
      ...(managedFields === undefined ? {} : { managedFields }),
    },
    ...(status === undefined ? {} : { status }),
  };
}
