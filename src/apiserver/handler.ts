import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import { uuid, type Random } from "../base/random.ts";
import type { Handler, HandlerRequest, HandlerResponse } from "../kube/handler.ts";
import { coreVersions, groupList, groupOf, paths, resourceList } from "./discovery.ts";
import { methodNotAllowed, StatusError, toResponse, toStatusError, unknownResource } from "./errors.ts";
import { checkAccept } from "./negotiation.ts";
import { flag } from "./options.ts";
import { createRequestMetrics } from "./request-metrics.ts";
import { jsonResponse, type Verb, type VerbDeps } from "./request.ts";
import { parseRoute, type ResourceRoute, type Route } from "./routes.ts";
import type { ObjectStore } from "./store/store.ts";
import { verbFor, type VerbName } from "./verb-names.ts";
import { create } from "./verbs/create.ts";
import { deleteCollection } from "./verbs/delete-collection.ts";
import { deleteOne } from "./verbs/delete.ts";
import { get } from "./verbs/get.ts";
import { list } from "./verbs/list.ts";
import { patch } from "./verbs/patch.ts";
import { update } from "./verbs/update.ts";
import { watch } from "./verbs/watch.ts";

/** Above it a request is refused: what the real server accepts, and room for the largest object of 1.5 MB. */
export const BODY_BYTES_MAX = 3 * 2 ** 20;

export interface HandlerDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface HandlerOptions {
  /** `host:port` as clients reach it, for discovery. */
  readonly serverAddress?: string;
  /** What `/version` says; see version.ts. */
  readonly version?: object;
  /** Renders `/metrics`; without it that path does not exist. */
  readonly renderMetrics?: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

const VERBS: Readonly<Record<VerbName, Verb>> = {
  get,
  list,
  watch,
  create,
  update,
  patch,
  delete: deleteOne,
  deletecollection: deleteCollection,
};

/**
 * The API server without a socket: the simulator and the real server run this very function. Time and
 * chance come from `deps` alone, so that one seed gives the same uids, names and timeouts.
 *
 * It trusts its caller: who may do what is decided by `createAuthorizer` around it.
 */
export function createHandler(deps: HandlerDeps, options: HandlerOptions = {}): Handler {
  const verbDeps: VerbDeps = { store: deps.store, clock: deps.clock, random: deps.random.fork("objects") };
  // Its own stream: how many requests were made must not change the uids of a simulation.
  const auditRandom = deps.random.fork("audit");
  const observe = createRequestMetrics(deps.metrics, deps.clock);

  return async (request) => {
    const { path, query } = splitPath(request.path);
    const route = parseRoute(path);
    const verb = route.kind === "resource" ? verbFor(request.method, route, query) : undefined;
    const finish = observe(verb, route);
    const response = await answer();
    return finish({ ...response, headers: { ...commonHeaders(request, auditRandom), ...response.headers } });

    async function answer(): Promise<HandlerResponse> {
      try {
        checkSize(request.body);
        if (route.kind !== "resource") return await answerOther(route, request, query, options);
        if (verb === undefined) throw methodNotAllowed();
        checkAccept(request.headers["accept"]);
        return pretty(await VERBS[verb](verbDeps, toResourceRequest(route, request, query)), query);
      } catch (error) {
        const known = toStatusError(error);
        if (known === undefined && !request.signal.aborted) {
          deps.log.error("request failed", { method: request.method, path, error });
        }
        return toResponse(
          known ?? new StatusError(500, "Internal error occurred; the server's log has the cause"),
        );
      }
    }
  };
}

function toResourceRequest(route: ResourceRoute, request: HandlerRequest, query: URLSearchParams) {
  return {
    kind: route.resource,
    namespace: route.namespace,
    name: route.name ?? "",
    subresource: route.subresource,
    query,
    headers: request.headers,
    body: request.body,
    signal: request.signal,
  };
}

async function answerOther(
  route: Exclude<Route, ResourceRoute>,
  request: HandlerRequest,
  query: URLSearchParams,
  options: HandlerOptions,
): Promise<HandlerResponse> {
  if (route.kind === "unknown-path") return textResponse(404, "404 page not found\n");
  if (route.kind === "unknown-resource") throw unknownResource();
  if (request.method !== "GET") throw methodNotAllowed();
  if (route.kind === "health") return health(route, query);
  if (route.kind === "metrics") return renderMetrics(options);
  return pretty(jsonResponse(200, JSON.stringify(describe(route, options))), query);
}

function describe(
  route: Extract<Route, { kind: "root" | "version" | "core-versions" | "groups" | "group" | "resources" }>,
  { serverAddress = "127.0.0.1:6443", version = {} }: HandlerOptions,
): object {
  switch (route.kind) {
    case "root":
      return paths();
    case "version":
      return version;
    case "core-versions":
      return coreVersions(serverAddress);
    case "groups":
      return groupList();
    case "group":
      return groupOf(route.group);
    case "resources":
      return resourceList(route.group, route.version);
  }
}

/** There is one check: that this handler is being called. Storage checks join it with the disk store. */
function health(
  { endpoint, check }: Extract<Route, { kind: "health" }>,
  query: URLSearchParams,
): HandlerResponse {
  if (check !== undefined && check !== "ping") return textResponse(404, "404 page not found\n");
  if (check !== undefined || !query.has("verbose")) return textResponse(200, "ok");
  return textResponse(200, `[+]ping ok\n${endpoint} check passed\n`);
}

async function renderMetrics(options: HandlerOptions): Promise<HandlerResponse> {
  if (options.renderMetrics === undefined) return textResponse(404, "404 page not found\n");
  const { contentType, text } = await options.renderMetrics();
  return { status: 200, headers: { "content-type": contentType }, body: text };
}

function checkSize(body: string | Uint8Array): void {
  const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  if (bytes > BODY_BYTES_MAX) throw tooLarge();
}

export function tooLarge(): StatusError {
  return new StatusError(413, `Request entity too large: limit is ${BODY_BYTES_MAX}`);
}

function commonHeaders(request: HandlerRequest, random: Random): Record<string, string> {
  return { "cache-control": "no-cache, private", "audit-id": request.headers["audit-id"] ?? uuid(random) };
}

function pretty(response: HandlerResponse, query: URLSearchParams): HandlerResponse {
  if (flag(query, "pretty") !== true || query.get("pretty") === "" || typeof response.body !== "string")
    return response;
  return { ...response, body: `${JSON.stringify(JSON.parse(response.body), null, 2)}\n` };
}

function textResponse(status: number, body: string): HandlerResponse {
  return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body };
}

function splitPath(target: string): { path: string; query: URLSearchParams } {
  const mark = target.indexOf("?");
  if (mark < 0) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}
