import { noMetrics } from "../../base/metrics.ts";
import type {
  Client,
  DeleteOptions,
  ListOptions,
  ObjectList,
  Patch,
  PatchOptions,
  WatchOptions,
  WriteOptions,
} from "./client.ts";
import { createSend, decode, requestHeaders, type Call, type Send, type SendDeps } from "./call.ts";
import { isKubeError } from "../errors.ts";
import type { LimiterOptions } from "./limiter.ts";
import {
  apiVersionOf,
  collectionPath,
  objectPath,
  resourceName,
  toKey,
  type KubeObject,
  type ObjectRef,
  type Resource,
} from "../object.ts";
import { createRequestMetrics, type RequestMetrics } from "./request-metrics.ts";
import type { TransportStream } from "../transport/transport.ts";

export interface ClientOptions extends LimiterOptions {
  /** Who owns the fields we write, in `managedFields`. */
  readonly fieldManager?: string;
  /** For calls that name none. Longer than the 3 s that a server may wait for a resourceVersion to arrive. */
  readonly deadlineMs?: number;
}

export function createClient(
  deps: SendDeps,
  { fieldManager = "mooring", deadlineMs = 30_000, ...limits }: ClientOptions = {},
): Client {
  const measured = createRequestMetrics(deps.metrics ?? noMetrics, deps.host ?? "");
  const send = createSend({ ...deps, measured }, { deadlineMs, ...limits });
  /** Nearly every write has it; making it takes as long as a tenth of a small request. */
  const usualQuery = toQuery({ fieldManager });

  function write<T>(
    call: Pick<Call, "what" | "verb" | "resource" | "method" | "path" | "body"> & Partial<Call>,
    { subresource: _, fieldManager: manager = fieldManager, dryRun = false, ...options }: WriteOptions,
  ): Promise<T> {
    const usual = manager === fieldManager && !dryRun;
    const query = usual ? usualQuery : toQuery({ fieldManager: manager, dryRun: dryRun ? "All" : undefined });
    return send({
      contentType: "application/json",
      repeatable: "if-not-carried-out",
      options,
      ...call,
      path: call.path + join(call.path, query),
    });
  }

  return {
    get: (resource, ref, options = {}) =>
      send({
        what: `get ${describe(resource, ref)}`,
        verb: "get",
        resource,
        method: "GET",
        path: objectPath(resource, ref),
        repeatable: "always",
        options,
      }),

    list: <T extends KubeObject>(
      resource: Resource<T>,
      { signal, deadlineMs, ...options }: ListOptions = {},
    ) =>
      send<ObjectList<T>>({
        what: `list ${resourceName(resource)}`,
        verb: "list",
        resource,
        method: "GET",
        path: collectionPath(resource, options.namespace) + toQuery({ ...options, namespace: undefined }),
        repeatable: "always",
        options: { signal, ...(deadlineMs === undefined ? {} : { deadlineMs }) },
      }),

    create: (resource, object, options = {}) =>
      write(
        {
          what: `create ${describe(resource, refOf(object))}`,
          verb: "create",
          resource,
          method: "POST",
          path: collectionPath(resource, object.metadata.namespace),
          body: withType(resource, object),
        },
        options,
      ),

    update: (resource, object, options = {}) =>
      write(
        {
          what: `update ${describe(resource, refOf(object), options.subresource)}`,
          verb: "update",
          resource,
          method: "PUT",
          path: objectPath(resource, refOf(object), options.subresource),
          body: withType(resource, object),
        },
        options,
      ),

    patch: (resource, ref, patch, { repeatable = false, ...options }: PatchOptions = {}) =>
      write(
        {
          what: `patch ${describe(resource, ref, options.subresource)}`,
          verb: "patch",
          resource,
          method: "PATCH",
          path:
            objectPath(resource, ref, options.subresource) +
            toQuery({ force: isForced(patch) ? "true" : undefined }),
          contentType: PATCH_TYPES[patch.type],
          body: patch.type === "json" ? patch.operations : patch.value,
          // Applying the same intent twice is what server-side apply is for.
          repeatable: repeatable || patch.type === "apply" ? "always" : "if-not-carried-out",
        },
        options,
      ),

    delete: (resource, ref, options = {}) => deleteObject(send, resource, ref, options),

    watch: (resource, options) => openWatch({ ...deps, measured }, resource, options),
  };
}

async function deleteObject(
  send: Send,
  resource: Resource,
  ref: ObjectRef,
  { signal, deadlineMs, ...body }: DeleteOptions,
): Promise<void> {
  let doubt = false;
  const call: Call = {
    what: `delete ${describe(resource, ref)}`,
    verb: "delete",
    resource,
    method: "DELETE",
    path: objectPath(resource, ref),
    contentType: "application/json",
    body: { apiVersion: "v1", kind: "DeleteOptions", ...body },
    repeatable: "if-not-carried-out",
    options: { signal, ...(deadlineMs === undefined ? {} : { deadlineMs }) },
  };
  // With a uid the second copy can only hit the object that was meant, so it may be sent; that it
  // finds nothing then means that the first one worked.
  const guarded = body.preconditions?.uid !== undefined;
  for (;;) {
    try {
      await send(call);
      return;
    } catch (error) {
      if (doubt && isKubeError(error, "NotFound")) return;
      if (doubt || !guarded || !isKubeError(error, "ConnectionLost")) throw error;
      doubt = true;
    }
  }
}

/** Opens a watch or throws what the server answered instead. */
async function openWatch(
  {
    transport,
    clock,
    measured,
  }: Pick<SendDeps, "transport" | "clock"> & { readonly measured: RequestMetrics },
  resource: Resource,
  options: WatchOptions,
): Promise<TransportStream> {
  const startedAtMs = clock.now();
  const ended = (status: number | undefined, error?: string) =>
    measured.ended({
      method: "GET",
      verb: "watch",
      resource: resourceName(resource),
      status,
      error,
      tookMs: clock.now() - startedAtMs,
      requestBytes: 0,
      responseBytes: 0,
      retries: 0,
    });
  const query = toQuery({
    watch: "true",
    allowWatchBookmarks: "true",
    labelSelector: options.labelSelector,
    fieldSelector: options.fieldSelector,
    resourceVersion: options.resourceVersion,
    timeoutSeconds: options.timeoutSeconds,
    sendInitialEvents: options.sendInitialEvents ? "true" : undefined,
    resourceVersionMatch: options.sendInitialEvents ? "NotOlderThan" : undefined,
  });
  const stream = await transport
    .stream({
      method: "GET",
      path: collectionPath(resource, options.namespace) + query,
      headers: requestHeaders(),
      signal: options.signal,
    })
    .catch((error: unknown) => {
      ended(undefined, isKubeError(error) ? error.code : undefined);
      throw error;
    });
  ended(stream.status);
  if (stream.status === 200) return stream;
  const body = await readAll(stream.body);
  return decode(`watch ${resourceName(resource)}`, { ...stream, body });
}

/** An error body is a Status of a few kB; what is longer is not one. */
const ERROR_BODY_BYTES_MAX = 1 << 20;

async function readAll(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    sizeBytes += chunk.byteLength;
    if (sizeBytes > ERROR_BODY_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).toString("utf8");
}

const PATCH_TYPES: Record<Patch["type"], string> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  // JSON is YAML; this is the media type every server since 1.16 takes.
  apply: "application/apply-patch+yaml",
};

function isForced(patch: Patch): boolean {
  return patch.type === "apply" && patch.force === true;
}

/** Servers infer both from the path; proxies and audit logs like to see them. */
function withType<T extends KubeObject>(resource: Resource<T>, object: T): T {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

function refOf({ metadata }: KubeObject): ObjectRef {
  return { name: metadata.name ?? metadata.generateName ?? "", namespace: metadata.namespace };
}

function describe(resource: Resource, ref: ObjectRef, subresource?: string): string {
  return `${resourceName(resource)}${subresource === undefined ? "" : `/${subresource}`} ${toKey(ref)}`;
}

function toQuery(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** A second query continues the first. */
function join(path: string, query: string): string {
  return path.includes("?") ? query.replace("?", "&") : query;
}
