// The real `mooring apiserver` process and a client of it, as a user has both.
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { loadClusterAccess } from "../../src/kube/config/load.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import type { Method, Transport } from "../../src/kube/transport/transport.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";
import { Running } from "./mooring.ts";

/** An object as it came over the wire. */
export interface Seen {
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly { readonly uid: string }[];
  };
  readonly [field: string]: unknown;
}

export interface SeenList {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly Seen[];
}

export interface Cluster {
  readonly process: Running;
  readonly transport: Transport;
  /** The body of any answer, with its status. */
  call<T = Seen>(
    method: Method,
    path: string,
    body?: unknown,
    contentType?: string,
  ): Promise<{ readonly status: number; readonly body: T }>;
  list(path: string): Promise<SeenList>;
  /** SIGKILL; resolves when nothing of it is left. */
  kill(): Promise<void>;
}

export async function startCluster(dataDir: string, port: number): Promise<Cluster> {
  const process = new Running("apiserver", "--data-dir", dataDir, "--listen", `127.0.0.1:${port}`);
  await process.says(/"message":"serving"/);
  const transport = await connect(join(dataDir, "admin.kubeconfig"));
  const call: Cluster["call"] = async <T>(
    method: Method,
    path: string,
    body?: unknown,
    contentType?: string,
  ) => {
    const headers = { accept: "application/json", "content-type": contentType ?? "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const response = await transport.request({ method, path, headers, ...sent });
    return { status: response.status, body: JSON.parse(response.body) as T };
  };
  let closing: Promise<void> | undefined;
  return {
    process,
    transport,
    call,
    async list(path) {
      const { status, body } = await call<SeenList>("GET", path);
      if (status !== 200) throw new Error(`GET ${path}: ${status} ${JSON.stringify(body)}`);
      return body;
    },
    async kill() {
      process.kill("SIGKILL");
      closing ??= process.exit().then(() => transport.close());
      await closing;
    },
  };
}

export async function connect(kubeconfig: string): Promise<Transport> {
  const clock = createSystemClock();
  const deps = { world: createLocalWorld(), clock, log: silentLogger };
  return createHttpTransport(await loadClusterAccess(deps, { kubeconfig }), { clock, userAgent: "e2e" });
}

/** A port that was free a moment ago: a server that is started again should be where its clients look for it. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** `pods`, `clusterroles.rbac.authorization.k8s.io`: every kind with a group is served as v1 of it. */
export function pathOf(resource: string): string {
  const [plural, ...group] = resource.split(".");
  return group.length === 0 ? `/api/v1/${plural}` : `/apis/${group.join(".")}/v1/${plural}`;
}
