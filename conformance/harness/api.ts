import { withDeadline } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import type { Client } from "../../src/kube/client/client.ts";
import { loadClusterAccess } from "../../src/kube/config/load.ts";
import { createInformer, type Informer } from "../../src/kube/informer/informer.ts";
import type { KubeObject, Resource } from "../../src/kube/object.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import type { Method } from "../../src/kube/transport/transport.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";

/** The API server as a suite speaks to it. */
export interface Api {
  readonly client: Client;
  /** One request; anything but success throws. */
  send<T = KubeObject>(method: Method, path: string, body?: unknown): Promise<T>;
  /** What is not JSON, such as the server's metrics. */
  text(path: string): Promise<string>;
  /** As `send`, with undefined where there is no such object. */
  find<T = KubeObject>(path: string): Promise<T | undefined>;
  /** A live copy of one kind, complete when this resolves; it ends with `close`. */
  follow<T extends KubeObject>(resource: Resource<T>): Promise<Informer<T>>;
  close(): Promise<void>;
}

const CALL_MS_MAX = 30_000;

function late(what: string): Error {
  return new Error(`${what}: no answer within ${CALL_MS_MAX} ms`);
}

export async function openApi(kubeconfig: string): Promise<Api> {
  const clock = createSystemClock();
  const random = createSeededRandom("conformance");
  const access = await loadClusterAccess(
    { world: createLocalWorld(), clock, log: silentLogger },
    { kubeconfig },
  );
  const transport = createHttpTransport(access, { clock, userAgent: "mooring-conformance" });
  const client = createClient({ transport, clock, random: random.fork("client") });
  const stop = new AbortController();
  const running: Promise<void>[] = [];

  async function request(method: Method, path: string, body?: unknown) {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const send = (signal: AbortSignal) =>
      transport.request({
        method,
        path,
        headers: { accept: "application/json", "content-type": type },
        signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    return withDeadline(clock, { ms: CALL_MS_MAX, onDeadline: () => late(`${method} ${path}`) }, send);
  }

  return {
    client,
    async send<T>(method: Method, path: string, body?: unknown) {
      const answer = await request(method, path, body);
      if (answer.status >= 300)
        throw new Error(`${method} ${path}: ${answer.status} ${answer.body.slice(0, 300)}`);
      return JSON.parse(answer.body) as T;
    },
    async text(path) {
      const answer = await request("GET", path);
      if (answer.status !== 200)
        throw new Error(`GET ${path}: ${answer.status} ${answer.body.slice(0, 300)}`);
      return answer.body;
    },
    async find<T>(path: string) {
      const answer = await request("GET", path);
      if (answer.status === 404) return undefined;
      if (answer.status !== 200)
        throw new Error(`GET ${path}: ${answer.status} ${answer.body.slice(0, 300)}`);
      return JSON.parse(answer.body) as T;
    },
    async follow(resource) {
      const informer = createInformer({ client, clock, random: random.fork(resource.plural) }, { resource });
      running.push(informer.run(stop.signal));
      const synced = {
        ms: CALL_MS_MAX,
        signal: stop.signal,
        onDeadline: () => late(`list ${resource.plural}`),
      };
      await withDeadline(clock, synced, (signal) => informer.whenSynced(signal));
      return informer;
    },
    async close() {
      stop.abort();
      await Promise.allSettled(running);
      await transport.close();
    },
  };
}
