import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import { uuid, type Random } from "../base/random.ts";
import type { Handler, HandlerRequest, HandlerResponse } from "../kube/handler.ts";
import { answerDocument, DEFAULT_ADDRESS, type DocumentOptions } from "./documents.ts";
import { methodNotAllowed, StatusError, toResponse, toStatusError } from "./errors.ts";
import { answerIssuer, answerQuestion, rightsOf, type Guard, type Rights } from "./guard.ts";
import { pods } from "./kinds.ts";
import { prepareAnswer, prepareQuestion } from "./negotiate/answer.ts";
import { createRequestMetrics } from "./request-metrics.ts";
import type { ResourceRequest, Verb, VerbDeps } from "./request.ts";
import { parseRoute, type QuestionRoute, type ResourceRoute } from "./routes.ts";
import { warningHeader } from "./schema/warnings.ts";
import type { ObjectStore } from "./store/store.ts";
import { verbFor, type VerbName } from "./verb-names.ts";
import { create } from "./verbs/create.ts";
import { deleteCollection } from "./verbs/delete-collection.ts";
import { deleteOne } from "./verbs/delete.ts";
import { get } from "./verbs/get.ts";
import { list } from "./verbs/list.ts";
import { patch } from "./verbs/patch.ts";
import { subresourceVerb } from "./verbs/subresources.ts";
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
  readonly guard?: Guard;
}

export type HandlerOptions = DocumentOptions;

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
 * Without a guard it trusts its caller.
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
    /** What policies have to say to the sender without stopping the request. */
    const warnings: string[] = [];
    const response = withWarnings(await answer(), warnings);
    return finish({ ...response, headers: { ...commonHeaders(request, auditRandom), ...response.headers } });

    async function answer(): Promise<HandlerResponse> {
      try {
        const rights = rightsOf(deps.guard, deps, request);
        const warn = (text: string) => void warnings.push(text);
        checkSize(request.body);
        if (route.kind === "question") {
          const { finish: show } = prepareQuestion(request.headers["accept"], query);
          return route.question.kind === "Binding"
            ? show(await bindAny(verbDeps, { route, request, query, rights, warn }))
            : show(answerQuestion(deps.guard, rights.user, route, request));
        }
        if (route.kind === "openid") {
          return answerIssuer(deps.guard, options.serverAddress ?? DEFAULT_ADDRESS, route, request);
        }
        if (route.kind !== "resource") return await answerDocument(deps, { route, request, query }, options);
        if (verb === undefined) throw methodNotAllowed();
        const accept = request.headers["accept"];
        const { resource: kind, subresource } = route;
        const wanted = prepareAnswer(deps, { verb, kind, subresource, accept, query });
        const { representer } = wanted;
        const resourceRequest = { ...toResourceRequest(route, request, query), representer, rights, warn };
        return wanted.finish(await verbOf(route, verb)(verbDeps, resourceRequest));
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

/** `bindings`, the older way to bind a pod, which is named in the body. */
function bindAny(
  deps: VerbDeps,
  {
    route,
    request,
    query,
    rights,
    warn,
  }: {
    route: QuestionRoute;
    request: HandlerRequest;
    query: URLSearchParams;
    rights: Rights;
    warn: ResourceRequest["warn"];
  },
): Promise<HandlerResponse> {
  if (request.method !== "POST") throw methodNotAllowed();
  const pod: ResourceRoute = {
    kind: "resource",
    resource: pods,
    ...(route.namespace === undefined ? {} : { namespace: route.namespace }),
  };
  const { representer } = prepareAnswer(deps, { verb: "create", kind: pods, accept: undefined, query });
  return subresourceVerb("pods", "binding")(deps, {
    ...toResourceRequest(pod, request, query),
    representer,
    rights,
    warn,
  });
}

function verbOf({ resource, subresource }: ResourceRoute, verb: VerbName): Verb {
  if (subresource === undefined || subresource === "status") return VERBS[verb];
  return subresourceVerb(resource.plural, subresource);
}

function toResourceRequest(route: ResourceRoute, request: HandlerRequest, query: URLSearchParams) {
  return {
    method: request.method,
    kind: route.resource,
    namespace: route.namespace,
    name: route.name ?? "",
    subresource: route.subresource === "status" ? ("status" as const) : undefined,
    query,
    headers: request.headers,
    body: request.body,
    signal: request.signal,
  };
}

/** Added to those about the body, which the verb has put there. */
function withWarnings(response: HandlerResponse, texts: readonly string[]): HandlerResponse {
  const added = warningHeader(texts);
  if (added === undefined) return response;
  const given = response.headers["warning"];
  return {
    ...response,
    headers: { ...response.headers, warning: given === undefined ? added : `${given}, ${added}` },
  };
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

function splitPath(target: string): { path: string; query: URLSearchParams } {
  const mark = target.indexOf("?");
  if (mark < 0) return { path: target, query: new URLSearchParams() };
  return { path: target.slice(0, mark), query: new URLSearchParams(target.slice(mark + 1)) };
}
