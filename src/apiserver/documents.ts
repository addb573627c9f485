import type { Clock } from "../base/clock.ts";
import type { HandlerRequest, HandlerResponse } from "../kube/handler.ts";
import { OPENID_PATHS } from "./auth/openid.ts";
import { methodNotAllowed, unknownResource } from "./errors.ts";
import { negotiate } from "./negotiate/accept.ts";
import { createAggregatedDiscovery } from "./negotiate/aggregated-discovery.ts";
import { pretty } from "./negotiate/answer.ts";
import { CATALOGUE } from "./negotiate/catalogue.ts";
import { coreVersions, groupList, groupOf, paths, resourceList } from "./negotiate/legacy-discovery.ts";
import { jsonResponse } from "./request.ts";
import { createOpenApi } from "./schema/openapi.ts";
import type { ObjectStore, StoreHealth } from "./store/store.ts";
import type { OpenIdRoute, QuestionRoute, ResourceRoute, Route } from "./routes.ts";

/** Everything this server answers that is not an object of a kind: health, version, metrics, discovery. */
export interface DocumentOptions {
  /** `host:port` as clients reach it, for discovery; asked for with every request. */
  readonly serverAddress?: string;
  /** What `/version` says; see version.ts. */
  readonly version?: object;
  /** Renders `/metrics`; without it that path does not exist. */
  readonly renderMetrics?: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

export type DocumentRoute = Exclude<Route, ResourceRoute | QuestionRoute | OpenIdRoute>;

export const DEFAULT_ADDRESS = "127.0.0.1:6443";

/** What `/` lists besides the paths of the API. */
const OTHER_PATHS = ["/healthz", "/livez", "/metrics", "/readyz", "/version", ...Object.values(OPENID_PATHS)];

/**
 * kubectl asks for the old document when a file holds a `kind: List`, and gives up on a 404. An empty one, which in
 * protobuf is no bytes at all, tells it to leave validation to the server.
 */
const EMPTY_OPENAPI_V2: HandlerResponse = {
  status: 200,
  headers: { "content-type": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" },
  body: "",
};

const aggregated = createAggregatedDiscovery(CATALOGUE);

const openApi = createOpenApi(CATALOGUE);

export async function answerDocument(
  { clock, store }: { readonly clock: Clock; readonly store: ObjectStore },
  { route, request, query }: { route: DocumentRoute; request: HandlerRequest; query: URLSearchParams },
  options: DocumentOptions,
): Promise<HandlerResponse> {
  if (route.kind === "unknown-path") return notFoundText();
  if (route.kind === "unknown-resource") throw unknownResource();
  if (request.method !== "GET") throw methodNotAllowed();
  if (route.kind === "health") return health(route, query, store);
  if (route.kind === "metrics") return renderMetrics(options);
  if (route.kind === "openapi-v2") return EMPTY_OPENAPI_V2;
  if (route.kind === "openapi") {
    const ifNoneMatch = request.headers["if-none-match"];
    const asked = { path: route.path, hash: query.get("hash"), ifNoneMatch, now: clock.wall() };
    return openApi.respond(asked) ?? notFoundText();
  }
  const isDiscovery = route.kind === "core-versions" || route.kind === "groups";
  const { as } = negotiate(request.headers["accept"], isDiscovery ? "discovery" : "document");
  if (as.kind === "discovery") {
    const path = route.kind === "groups" ? "/apis" : "/api";
    return aggregated.answer(path, as.version, request.headers["if-none-match"]);
  }
  return pretty(jsonResponse(200, JSON.stringify(describe(route, options))), query);
}

function describe(
  route: Extract<
    DocumentRoute,
    { kind: "root" | "version" | "core-versions" | "groups" | "group" | "resources" }
  >,
  { serverAddress = DEFAULT_ADDRESS, version = {} }: DocumentOptions,
): object {
  switch (route.kind) {
    case "root":
      return paths(CATALOGUE, OTHER_PATHS);
    case "version":
      return version;
    case "core-versions":
      return coreVersions(CATALOGUE, serverAddress);
    case "groups":
      return groupList(CATALOGUE);
    case "group":
      return groupOf(CATALOGUE, route.group);
    case "resources":
      return resourceList(CATALOGUE, route.group, route.version);
  }
}

/** That this handler is being called, and whether writes get through. A full disk is not ready, but alive. */
function health(
  { endpoint, check }: Extract<Route, { kind: "health" }>,
  query: URLSearchParams,
  store: ObjectStore,
): HandlerResponse {
  const storeProblem =
    store.health.kind === "ok" || endpoint === "livez" ? undefined : describeHealth(store.health);
  const checks = [
    { name: "ping", problem: undefined },
    { name: "store", problem: storeProblem },
  ].filter(({ name }) => check === undefined || check === name);
  if (checks.length === 0) return notFoundText();
  const failed = checks.filter(({ problem }) => problem !== undefined);
  if (failed.length === 0 && (check !== undefined || !query.has("verbose"))) return textResponse(200, "ok");
  const lines = checks.map(({ name, problem }) =>
    problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
  );
  const verdict = `${endpoint} check ${failed.length === 0 ? "passed" : "failed"}`;
  return textResponse(failed.length === 0 ? 200 : 500, `${[...lines, verdict].join("\n")}\n`);
}

function describeHealth(health: Exclude<StoreHealth, { kind: "ok" }>): string {
  return health.kind === "stalled"
    ? `the disk has not answered for ${Math.round(health.forMs / 1_000)} s`
    : health.why;
}

async function renderMetrics(options: DocumentOptions): Promise<HandlerResponse> {
  if (options.renderMetrics === undefined) return notFoundText();
  const { contentType, text } = await options.renderMetrics();
  return { status: 200, headers: { "content-type": contentType }, body: text };
}

function notFoundText(): HandlerResponse {
  return textResponse(404, "404 page not found\n");
}

function textResponse(status: number, body: string): HandlerResponse {
  return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body };
}
