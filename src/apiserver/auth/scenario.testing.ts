import { silentLogger } from "../../base/log.ts";
import { noMetrics } from "../../base/metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import type { Handler, HandlerRequest, HandlerResponse, HandlerUser } from "../../kube/handler.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { notFound, toResponse, toStatusError } from "../errors.ts";
import { createHandler } from "../handler.ts";
import { pods } from "../kinds.ts";
import { createSystemNamespaces } from "../namespaces.ts";
import type { ApiObject } from "../objects.ts";
import { jsonResponse } from "../request.ts";
import { ADMIN, testKeys, type Answer } from "../scenario.testing.ts";
import { createMemoryStore } from "../store/memory.ts";
import { admit } from "./access.ts";
import type { AccessAttributes } from "./attributes.ts";
import { createAuthenticator } from "./authenticator.ts";
import { createAuthorizer, type AuthorizationMode } from "./authorizer.ts";
import { ensureBootstrapPolicy } from "./bootstrap.ts";
import { answerReview, findReview } from "./reviews.ts";
import { createServiceAccountTokens } from "./service-account-tokens.ts";
import { parseStaticTokens } from "./static-tokens.ts";
import { requestToken } from "./token-request.ts";
import type { UserInfo } from "./user.ts";

export function nodeUser(node: string): UserInfo {
  return { name: `system:node:${node}`, groups: ["system:nodes", "system:authenticated"] };
}

export function bareStore() {
  const scheduler = new SimScheduler(createSeededRandom("scheduler"));
  const clock = scheduler.createClock();
  return { scheduler, clock, store: createMemoryStore({ clock }) };
}

/** For tests: an API server in memory with its doors guarded as the real one's are. `bobtoken` is bob's. */
export async function givenCluster({ mode = "rbac" }: { mode?: AuthorizationMode } = {}) {
  const { scheduler, clock, store } = bareStore();
  const random = createSeededRandom("server");
  await createSystemNamespaces({ store, clock, random: random.fork("system") });
  await ensureBootstrapPolicy({ store, clock, random: random.fork("roles") });
  const keys = await testKeys();
  const serviceAccounts = createServiceAccountTokens({ store, clock, keys });
  const staticTokens = parseStaticTokens('bobtoken,bob,uid-bob,"devs"\n');
  const authenticator = createAuthenticator({ serviceAccounts, staticTokens });
  const authorizer = createAuthorizer({ store }, { mode });
  const deps = { store, clock, serviceAccounts, authenticator, authorizer };
  const bare = createHandler({ store, clock, random, log: silentLogger, metrics: noMetrics });

  const handler: Handler = async (request) => {
    try {
      const { user, access } = admit(deps, request);
      return answerOwn(user, access, request) ?? (await bare({ ...request, user }));
    } catch (error) {
      const known = toStatusError(error);
      if (known === undefined) throw error;
      return toResponse(known);
    }
  };

  /** What the routes of this server will call once these resources are part of them. */
  function answerOwn(
    user: UserInfo,
    access: AccessAttributes,
    request: HandlerRequest,
  ): HandlerResponse | undefined {
    if (access.kind === "path" || access.verb !== "create") return undefined;
    const { namespace, name } = access;
    const body = () => ({ metadata: {}, ...(JSON.parse(String(request.body)) as object) }) as ApiObject;
    if (access.subresource === "token") return created(requestToken(deps, { namespace, name }, body()));
    const review = findReview(access.group, access.resource);
    if (review === undefined) return undefined;
    if (review.namespaced && namespace === "") throw notFound(pods, name);
    const question = { user, namespace: review.namespaced ? namespace : undefined, body: body() };
    return created(answerReview(deps, review, question));
  }

  /** `as` is a bearer token, `user` a client certificate; neither is the administrator, `null` is nobody. */
  async function send(method: string, path: string, body?: unknown, options: SendOptions = {}) {
    const { as, user = as === undefined ? ADMIN : null, headers = {} } = options;
    const response = await handler({
      method,
      path,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(as === undefined ? {} : { authorization: `Bearer ${as}` }),
        ...headers,
      },
      body: body === undefined ? "" : JSON.stringify(body),
      signal: new AbortController().signal,
      ...(user === null ? {} : { user }),
    });
    const text = typeof response.body === "string" ? response.body : "a stream";
    return { status: response.status, text, body: parse(text) };
  }

  async function ok(method: string, path: string, body?: unknown, options?: SendOptions): Promise<Answer> {
    const { status, text, body: answer } = await send(method, path, body, options);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return answer;
  }

  await ok("POST", "/api/v1/namespaces", { metadata: { name: "t" } });
  // Which pods need; a controller makes it in every namespace.
  await ok("POST", "/api/v1/namespaces/t/serviceaccounts", { metadata: { name: "default" } });
  return { ...deps, keys, scheduler, random, send, ok };
}

export type Cluster = Awaited<ReturnType<typeof givenCluster>>;

interface SendOptions {
  readonly as?: string;
  readonly user?: HandlerUser | null;
  readonly headers?: Readonly<Record<string, string>>;
}

function created(body: object): HandlerResponse {
  return jsonResponse(201, JSON.stringify(body));
}

function parse(text: string): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    return {} as Answer; // plain text, which the test reads as such
  }
}
