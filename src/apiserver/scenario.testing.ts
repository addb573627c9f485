import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { silentLogger } from "../base/log.ts";
import { noMetrics } from "../base/metrics.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import type { StatusDetails } from "../kube/errors.ts";
import type { Handler, HandlerUser } from "../kube/handler.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createAuthenticator } from "./auth/authenticator.ts";
import { createAuthorizer } from "./auth/authorizer.ts";
import { ensureBootstrapPolicy } from "./auth/bootstrap.ts";
import { createServiceAccountTokens } from "./auth/service-account-tokens.ts";
import { generateSigningKey, loadTokenKeys } from "./auth/signing-key.ts";
import { parseStaticTokens } from "./auth/static-tokens.ts";
import { MASTERS } from "./auth/user.ts";
import type { Guard } from "./guard.ts";
import { createHandler, type HandlerOptions } from "./handler.ts";
import { createSystemNamespaces } from "./namespaces.ts";
import type { VerbDeps } from "./request.ts";
import { createMemoryStore, type MemoryStoreOptions } from "./store/memory.ts";
import type { ObjectStore } from "./store/store.ts";

/** For tests: an API server in memory on simulated time, with namespace `t`, and short ways to talk to it. */
export async function givenServer(
  options: MemoryStoreOptions & {
    handler?: HandlerOptions;
    wrap?: (handler: Handler) => Handler;
    wrapServerStore?: (inner: ObjectStore) => ObjectStore;
    /** With authentication and roles; whoever sends says who it is, or is the administrator. */
    guarded?: boolean;
  } = {},
) {
  const scheduler = new SimScheduler(createSeededRandom("scheduler"));
  const clock = scheduler.createClock();
  const memory = createMemoryStore({ clock }, options);
  const store = options.wrapServerStore?.(memory) ?? memory;
  const random = createSeededRandom("server");
  await createSystemNamespaces({ store, clock, random: random.fork("system") });
  const guard = options.guarded === true ? await createGuard({ store, clock, random }) : undefined;
  const bare = createHandler(
    {
      store,
      clock,
      random,
      log: silentLogger,
      metrics: noMetrics,
      ...(guard === undefined ? {} : { guard }),
    },
    options.handler,
  );
  const handler = options.wrap?.(bare) ?? bare;

  async function send(
    method: string,
    path: string,
    body?: unknown,
    { type, user = guard === undefined ? null : ADMIN, headers }: SendOptions = {},
  ) {
    const response = await handler({
      method,
      path,
      headers: { ...(body === undefined ? {} : { "content-type": type ?? "application/json" }), ...headers },
      body: body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body),
      signal: new AbortController().signal,
      ...(user === null ? {} : { user }),
    });
    if (typeof response.body !== "string") throw new Error(`${method} ${path} answered with a stream`);
    return {
      status: response.status,
      headers: response.headers,
      text: response.body,
      body: parseBody(response.body),
    };
  }

  /** As `send`, for preparing a scenario: anything but success is a mistake in the test. */
  async function ok(method: string, path: string, body?: unknown, sendOptions?: SendOptions) {
    const response = await send(method, path, body, sendOptions);
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
    return response.body;
  }

  async function watch(path: string, headers: Readonly<Record<string, string>> = {}) {
    const client = new AbortController();
    const user = guard === undefined ? {} : { user: ADMIN };
    const response = await handler({
      method: "GET",
      path,
      headers,
      body: "",
      signal: client.signal,
      ...user,
    });
    if (typeof response.body === "string")
      throw new Error(`watch ${path}: ${response.status} ${response.body}`);
    return new WatchReader(scheduler, response.body, client);
  }

  await ok("POST", "/api/v1/namespaces", { metadata: { name: "t" } });
  // Which pods need; a controller makes it in every namespace.
  await ok("POST", "/api/v1/namespaces/t/serviceaccounts", { metadata: { name: "default" } });
  return { scheduler, clock, store, handler, send, ok, watch };
}

export const ADMIN: HandlerUser = { name: "admin", groups: [MASTERS] };

/** One key for all tests of a run: making an RSA key takes longer than most of them. */
let signingKey: Promise<string> | undefined;

export async function testKeys() {
  signingKey ??= generateSigningKey();
  return loadTokenKeys([await signingKey]);
}

/** `bobtoken` is bob's. */
async function createGuard(deps: VerbDeps): Promise<Guard> {
  await ensureBootstrapPolicy({ ...deps, random: deps.random.fork("roles") });
  const serviceAccounts = createServiceAccountTokens({ ...deps, keys: await testKeys() });
  const staticTokens = parseStaticTokens('bobtoken,bob,uid-bob,"devs"\n');
  const authenticator = createAuthenticator({ serviceAccounts, staticTokens });
  return { serviceAccounts, authenticator, authorizer: createAuthorizer(deps, { mode: "rbac" }) };
}

interface SendOptions {
  readonly type?: string;
  /** `null` is nobody. */
  readonly user?: HandlerUser | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Whatever a test looks at in an answer: an object, a list or a Status. */
export interface Answer {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: ObjectMeta & { readonly continue?: string; readonly remainingItemCount?: number };
  readonly items: readonly Answer[];
  readonly reason: string;
  readonly message: string;
  readonly code: number;
  readonly details: Omit<StatusDetails, "causes"> & { causes: { reason: string; field: string }[] };
  readonly data: Readonly<Record<string, string>>;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status: Readonly<Record<string, unknown>>;
}

interface WatchEvent {
  readonly type: string;
  readonly object: Answer;
}

function parseBody(text: string): Answer {
  try {
    return JSON.parse(text) as Answer;
  } catch {
    return {} as Answer; // plain text, which the test reads as such
  }
}

/** Reads a watch all the time, so that what has arrived can be looked at. */
class WatchReader {
  readonly #scheduler: SimScheduler;
  readonly #client: AbortController;
  readonly #events: WatchEvent[] = [];
  #state: "open" | "ended" = "open";
  /** What came after the last whole line. */
  #rest = "";
  #text = "";

  constructor(scheduler: SimScheduler, body: AsyncIterable<string>, client: AbortController) {
    this.#scheduler = scheduler;
    this.#client = client;
    void this.#read(body);
  }

  get state(): "open" | "ended" {
    return this.#state;
  }

  /** All events so far, once everything under way has happened. */
  async events(): Promise<WatchEvent[]> {
    await this.#scheduler.runFor(0);
    return this.#events;
  }

  /** All of it as it was sent. */
  async text(): Promise<string> {
    await this.#scheduler.runFor(0);
    return this.#text;
  }

  /** The same as `TYPE name@resourceVersion`. */
  async lines(): Promise<string[]> {
    return (await this.events()).map(
      ({ type, object }) =>
        `${type} ${object.metadata.name ?? "-"}@${object.metadata.resourceVersion ?? String(object.code)}`,
    );
  }

  hangUp(): void {
    this.#client.abort(new Error("hung up"));
  }

  async #read(body: AsyncIterable<string>): Promise<void> {
    for await (const chunk of body) {
      this.#text += chunk;
      const lines = `${this.#rest}${chunk}`.split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#events.push(JSON.parse(line) as WatchEvent);
    }
    this.#state = "ended";
  }
}
