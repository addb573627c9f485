import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import { createClient } from "../kube/client/api-client.ts";
import type { Client } from "../kube/client/client.ts";
import { isInCluster } from "../kube/config/in-cluster.ts";
import { loadClusterAccess } from "../kube/config/load.ts";
import type { ConfigWorld } from "../kube/config/world.ts";
import { KubeError } from "../kube/errors.ts";
import type { ClusterAccess } from "../kube/transport/access.ts";
import { createFencedTransport } from "../kube/transport/fenced-transport.ts";
import type { Transport } from "../kube/transport/transport.ts";
import { createHttpTransport } from "../kube/transport/http-transport.ts";
import { createLocalWorld } from "./local-world.ts";
import { productVersion } from "./product.ts";

/** The API server a process works on, over one transport. */
export interface ClusterClient {
  readonly server: string;
  /** For reading. */
  readonly client: Client;
  /** For the work of a leader: its writes leave only while `mayWrite` says so. */
  readonly leaderClient: (mayWrite: () => boolean) => Client;
  /**
   * For events alone, with a limit of its own: behind thousands of requests that a busy server makes wait, people would be told
   * long after; and what it answers to events says nothing about the work.
   */
  readonly eventClient: Client;
  /** For the Lease alone, with a limit of its own: work that waits for a place must not cost us the lease. */
  readonly leaseClient: Client;
  close(): Promise<void>;
}

export interface ClusterClientDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface ClusterClientOptions {
  /** Without it, the service account of the pod we run in. */
  readonly kubeconfig?: string | undefined;
  /** Instead of a kubeconfig: the server beside us, whose certificates change. */
  readonly access?: ClusterAccess;
  readonly qps?: number | undefined;
  readonly burst?: number | undefined;
  /** `controller`: for the audit log and managed fields. */
  readonly component: string;
}

type ClientsOptions = Pick<ClusterClientOptions, "qps" | "burst" | "component"> & { readonly server: string };

export async function openCluster(
  { clock, random, log, metrics }: ClusterClientDeps,
  { kubeconfig, qps, burst, component, ...given }: ClusterClientOptions,
): Promise<ClusterClient> {
  const access = given.access ?? (await findAccess({ world: createLocalWorld(), clock, log }, kubeconfig));
  const userAgent = `mooring/${productVersion()} (${component})`;
  const transport = createHttpTransport(access, { clock, userAgent });
  const { server } = access;
  return clientsOver({ clock, random, log, metrics }, transport, { server, qps, burst, component });
}

/** The clients of a process over a transport that is there already: a socket's, or one in memory. */
export function clientsOver(
  { clock, random, metrics }: ClusterClientDeps,
  transport: Transport,
  { server, qps, burst, component }: ClientsOptions,
): ClusterClient {
  const fieldManager = `mooring-${component}`;
  const limits = { fieldManager, qps, burst };
  const { host } = new URL(server);
  const createWorkClient = (name: string, wire: Transport) =>
    createClient({ transport: wire, clock, random: random.fork(name), metrics, host }, limits);
  return {
    server,
    client: createWorkClient("client", transport),
    leaderClient: (mayWrite) => createWorkClient("leader", createFencedTransport(transport, mayWrite)),
    eventClient: createClient({ transport, clock, random: random.fork("event-client") }, limits),
    leaseClient: createClient({ transport, clock, random: random.fork("lease-client") }, { fieldManager }),
    close: () => transport.close(),
  };
}

/**
 * What a person's kubectl uses (KUBECONFIG, ~/.kube/config) is left alone: a controller that was started without a
 * flag by mistake would work on whatever cluster that person looked at last, beside the controller already there.
 */
export async function findAccess(
  { world, clock, log }: { readonly world: ConfigWorld; readonly clock: Clock; readonly log: Logger },
  kubeconfig: string | undefined,
): Promise<ClusterAccess> {
  if (kubeconfig !== undefined) return loadClusterAccess({ world, clock, log }, { kubeconfig });
  if (!isInCluster(world)) {
    throw new KubeError(
      "BadConfig",
      "no --kubeconfig was given and this process does not run in a pod; give --kubeconfig FILE",
    );
  }
  const env = { ...world.env, KUBECONFIG: undefined };
  return loadClusterAccess({ world: { ...world, env, homeDir: "" }, clock, log });
}
