import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { loadClusterAccess } from "../../src/kube/config/load.ts";
import { decodeWatch } from "../../src/kube/informer/watch.ts";
import type { KubeObject } from "../../src/kube/object.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import type { Method } from "../../src/kube/transport/transport.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";

/** The API server as load and attacher speak to it: no limit, no retries, anything unexpected ends the measurement. */
export interface Api {
  send<T = KubeObject>(method: Method, path: string, body?: unknown): Promise<T>;
  /** Resolves when the watch is open; each event then goes to `onEvent`. It lasts as long as the process. */
  watch<T extends KubeObject>(path: string, onEvent: (type: string, object: T) => void): Promise<void>;
}

const MERGE_PATCH = "application/merge-patch+json";

export async function openApi(kubeconfig: string): Promise<Api> {
  const clock = createSystemClock();
  const access = await loadClusterAccess(
    { world: createLocalWorld(), clock, log: silentLogger },
    { kubeconfig },
  );
  const transport = createHttpTransport(access, { clock, userAgent: "mooring-bench" });

  async function send<T>(method: Method, path: string, body?: unknown): Promise<T> {
    const type = method === "PATCH" ? MERGE_PATCH : "application/json";
    const response = await transport.request({
      method,
      path,
      headers: { accept: "application/json", "content-type": type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.status >= 300)
      throw new ApiError(response.status, `${method} ${path}: ${response.body.slice(0, 300)}`);
    return JSON.parse(response.body) as T;
  }

  async function open(path: string, version: string): Promise<AsyncIterable<Uint8Array>> {
    const query = `watch=true&timeoutSeconds=3600&resourceVersion=${version}`;
    const { status, body } = await transport.stream({ method: "GET", path: `${path}?${query}` });
    if (status !== 200) throw new ApiError(status, `watch ${path}`);
    return body;
  }

  async function watch<T extends KubeObject>(
    path: string,
    onEvent: (type: string, object: T) => void,
  ): Promise<void> {
    let version = (await send<KubeObject>("GET", `${path}?limit=1`)).metadata.resourceVersion ?? "";
    const first = await open(path, version);
    async function follow(): Promise<void> {
      // A server hangs up on a watcher that a busy machine has made slow; nothing is lost by that.
      for (let body = first; ; body = await open(path, version)) {
        for await (const batch of decodeWatch<T>(body)) {
          for (const { type, object } of batch) {
            if (type === "ERROR") throw new Error(`watch ${path}: ${JSON.stringify(object)}`);
            version = object.metadata.resourceVersion ?? version;
            onEvent(type, object);
          }
        }
      }
    }
    void follow();
  }

  return { send, watch };
}

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  constructor(status: number, message: string) {
    super(`${status} ${message}`);
    this.status = status;
  }
}

/** So many under way at a time, in order. */
export async function inParallel(
  count: number,
  inFlight: number,
  work: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker));
}
