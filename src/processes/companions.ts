import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { abortReason, type Clock } from "../base/clock.ts";
import type { LogLevel } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createPromMetrics } from "../base/prom-metrics.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { leases, type Lease } from "../kube/api/lease.ts";
import type { Client } from "../kube/client/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { openCluster, type ClusterClient } from "./cluster-client.ts";
import { ProcessError } from "./errors.ts";
import { createLeadership, type Term } from "./leader.ts";
import { shutdownSignal } from "./shutdown.ts";
import { startCompanions } from "./up/control-plane.ts";
import type { Member } from "./up/member.ts";
import { createParts } from "./up/parts.ts";

export interface CompanionsOptions {
  readonly kubeconfig: string | undefined;
  readonly qps: number | undefined;
  readonly burst: number | undefined;
  /** The socket of the driver whose volumes are made. */
  readonly socketPath: string;
  readonly logLevel: LogLevel;
}

const LISTENERS_MAX = 1_000;
const LEADER_ELECTION = {
  ...{ enabled: true, leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 },
  ...{ resourceName: "mooring-companions", resourceNamespace: "kube-system" },
};

/** `mooring companions`: what `mooring up` has beside its own programs, for a cluster of separate processes. */
export async function runCompanions(options: CompanionsOptions): Promise<void> {
  setMaxListeners(LISTENERS_MAX);
  const shutdown = shutdownSignal();
  const world = {
    clock: createSystemClock(),
    random: createSystemRandom(),
    log: createPinoLogger({ level: options.logLevel, fields: { component: "companions" } }),
    metrics: createPromMetrics(),
  };
  const cluster = await openCluster(world, { ...options, component: "companions" });
  try {
    await refuseOriginals(cluster.client, world.clock, shutdown);
    const leadership = createLeadership(
      { ...world, client: cluster.leaseClient, hostname: hostname() },
      LEADER_ELECTION,
    );
    await leadership.run((term) => work({ ...world, cluster }, term, options), shutdown);
  } finally {
    await cluster.close();
  }
  world.log.info("stopped", { reason: abortReason(shutdown).message });
}

async function work(
  member: Omit<Member, "cluster"> & { readonly cluster: ClusterClient },
  { signal, mayAct }: Term,
  { socketPath }: CompanionsOptions,
): Promise<void> {
  const parts = createParts(member.log);
  const cluster = { ...member.cluster, client: member.cluster.leaderClient(mayAct) };
  try {
    // Whoever stood by may come to lead days after it was started.
    await refuseOriginals(cluster.client, member.clock, signal);
    if (signal.aborted) return;
    await startCompanions({ ...member, cluster }, parts, { socketPaths: [socketPath] });
    member.log.info("started", { socket: socketPath });
    await new Promise<void>((resolve, reject) => {
      parts.failed.addEventListener("abort", () => reject(abortReason(parts.failed)), { once: true });
      signal.addEventListener("abort", () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
  } finally {
    await parts.stop();
  }
}

/** Programs that do the same work, by the Lease that each holds while it does. */
const ORIGINALS = ["kube-controller-manager", "kube-scheduler"];

/** A cluster has one binder and one scheduler. Several times the 15 s that a Lease lasts, for clocks that differ. */
const ALIVE_MS = 60_000;
const LEASE_SECONDS = 15;

export async function refuseOriginals(
  client: Pick<Client, "get">,
  clock: Pick<Clock, "wall" | "sleep">,
  signal: AbortSignal,
): Promise<void> {
  for (const name of ORIGINALS) {
    const lease = await find(client, name);
    const holder = lease?.spec?.holderIdentity ?? "";
    if (lease === undefined || holder === "") continue;
    const renewedMs = clock.wall().getTime() - Date.parse(lease.spec?.renewTime ?? "");
    if (renewedMs < ALIVE_MS || (await isRenewed(client, clock, lease, signal)))
      throw new ProcessError(
        "NotWorking",
        `${name} works on this cluster (Lease kube-system/${name} of ${holder}, renewed ${ageText(renewedMs)}): two would bind the same claims and pods; this command is for clusters without one`,
      );
  }
}

/** By our clock it ended long ago; but it may be the clocks that are apart, so it is watched for as long as it lasts. */
async function isRenewed(
  client: Pick<Client, "get">,
  clock: Pick<Clock, "sleep">,
  { metadata: { name = "" }, spec }: Lease,
  signal: AbortSignal,
): Promise<boolean> {
  await clock.sleep((spec?.leaseDurationSeconds ?? LEASE_SECONDS) * 1_000, signal).catch(() => undefined);
  if (signal.aborted) return false;
  const later = await find(client, name);
  return (later?.spec?.holderIdentity ?? "") !== "" && later?.spec?.renewTime !== spec?.renewTime;
}

function ageText(ms: number): string {
  return ms < ALIVE_MS ? `${Math.max(0, Math.round(ms / 1_000))} s ago` : "while it was looked at";
}

async function find(client: Pick<Client, "get">, name: string): Promise<Lease | undefined> {
  try {
    return await client.get(leases, { namespace: "kube-system", name });
  } catch (error) {
    if (isKubeError(error, "NotFound")) return undefined;
    throw error;
  }
}
