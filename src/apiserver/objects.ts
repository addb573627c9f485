import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { checkDepth, isJsonList, isJsonObject, type Json, type JsonObject } from "../kube/patch/json.ts";
import { apiVersionOf } from "../kube/object.ts";
import { badRequest } from "./errors.ts";
import type { Kind } from "./kinds.ts";
import type { StoredObject } from "./store/store.ts";

/** An object as this server works on it: raw JSON whose metadata is known to have the right types. */
export interface ApiObject {
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** Parsed once a version, and only where somebody looks inside. Nobody may change what it returns. */
export function parseStored(stored: StoredObject): ApiObject {
  let object = parsed.get(stored);
  if (object === undefined) {
    object = JSON.parse(stored.text) as ApiObject;
    parsed.set(stored, object);
  }
  return object;
}

const parsed = new WeakMap<StoredObject, ApiObject>();

/**
 * The text of an object in the form it is stored and sent. `kind` and `apiVersion` come first, always,
 * so that list items, which go without them, are a slice of it. Without a revision it is
 * the answer to a dry run.
 */
export function renderObject(kind: Kind, object: ApiObject, revision: number | undefined): string {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object;
  const { name, namespace, uid, resourceVersion: _resourceVersion, ...otherMetadata } = metadata;
  return JSON.stringify({
    kind: kind.kind,
    apiVersion: apiVersionOf(kind),
    metadata: {
      name,
      namespace,
      uid,
      resourceVersion: revision === undefined ? undefined : String(revision),
      ...otherMetadata,
    },
    ...rest,
  });
}

/** What every stored text of this kind begins with. */
export function typePrefix(kind: Kind): string {
  return `{"kind":${JSON.stringify(kind.kind)},"apiVersion":${JSON.stringify(apiVersionOf(kind))},`;
}

/** The body of a write as an object of this kind; 400 for anything else. `null` means absent, as in Go clients. */
export function decodeObject(kind: Kind, text: string): ApiObject {
  return checkObject(kind, parseJson(kind, text));
}

/** The same for a value that is JSON already, such as a patched object. */
export function checkObject(kind: Kind, value: unknown): ApiObject {
  if (!isJsonObject(value)) throw unrecognized(kind, "it is not a JSON object");
  const { kind: kindName, apiVersion, ...rest } = withoutNulls(checkDepth(value, "the object"));
  const version = apiVersionOf(kind);
  if ((kindName ?? kind.kind) !== kind.kind || (apiVersion ?? version) !== version) {
    throw badRequest(
      `${describeName(kindName)} in version ${JSON.stringify(apiVersion ?? version)} cannot be handled as a ${kind.kind} of ${version}`,
    );
  }
  const metadata = rest["metadata"] ?? {};
  const problem = metadataProblem(metadata);
  if (problem !== undefined)
    throw badRequest(`${kind.kind} in version "${version}" cannot be handled as a ${kind.kind}: ${problem}`);
  return { kind: kind.kind, apiVersion: version, ...rest, metadata: metadata as ObjectMeta };
}

/** A field by its path, whatever it is; undefined where the path leads nowhere. */
export function fieldAt(object: unknown, ...path: readonly string[]): unknown {
  let value = object;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** RFC 3339 in whole seconds, as metadata has it. */
export function toTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

function parseJson(kind: Kind, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unrecognized(kind, `json parse error: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function unrecognized(kind: Kind, why: string) {
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind.kind}): couldn't get version/kind; ${why}`,
  );
}

function withoutNulls(object: Json): JsonObject {
  return strip(object) as JsonObject;
}

function strip(value: Json): Json {
  if (isJsonList(value)) return value.map(strip);
  if (!isJsonObject(value)) return value;
  // fromEntries defines own properties, so that a key named __proto__ stays data.
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) =>
      member === null || member === undefined ? [] : [[key, strip(member)]],
    ),
  );
}

const TEXTS = [
  "name",
  "generateName",
  "namespace",
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
];

/** What in metadata is not of the type this server relies on; the rest is the client's business. */
function metadataProblem(metadata: unknown): string | undefined {
  if (!isJsonObject(metadata)) return "metadata must be an object";
  for (const field of TEXTS) {
    if (!isTextOrAbsent(metadata[field])) return `metadata.${field} must be a string`;
  }
  for (const field of ["labels", "annotations"]) {
    const map = metadata[field] ?? {};
    if (!isJsonObject(map)) return `metadata.${field} must be an object`;
    const wrong = Object.keys(map).find((key) => typeof map[key] !== "string");
    if (wrong !== undefined) return `metadata.${field}[${wrong}] must be a string`;
  }
  const finalizers = metadata["finalizers"] ?? [];
  if (!isJsonList(finalizers) || !finalizers.every((finalizer) => typeof finalizer === "string")) {
    return "metadata.finalizers must be a list of strings";
  }
  const owners = metadata["ownerReferences"] ?? [];
  if (!isJsonList(owners) || !owners.every(isJsonObject))
    return "metadata.ownerReferences must be a list of objects";
  return undefined;
}

function describeName(kindName: Json | undefined): string {
  return typeof kindName === "string" ? kindName : JSON.stringify(kindName ?? "");
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}
