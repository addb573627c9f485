import { setMaxListeners } from "node:events";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { abortReason, type Clock } from "../base/clock.ts";
import type { Logger, LogLevel } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createPromMetrics, type PromMetrics } from "../base/prom-metrics.ts";
import type { Random } from "../base/random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { openCluster, type ClusterClient } from "./cluster-client.ts";
import { healthRoutes, type HealthCheck } from "./health.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { startHttpEndpoint, type HttpEndpoint } from "./http-endpoint.ts";
import { json, localOnly } from "./endpoint.ts";
import { refuseKubelet } from "./kubelet-check.ts";
import { lockDirectory, type Lock } from "./lock.ts";
import { metricsRoute } from "./metrics-page.ts";
import { requireMounts } from "./mount-rights.ts";
import { createNodeAgent, type NodeAgent } from "./node-agent.ts";
import { runWithParts } from "./run-parts.ts";
import { shutdownSignal } from "./shutdown.ts";

export interface NodeOptions {
  readonly kubeconfig: string | undefined;
  readonly qps: number | undefined;
  readonly burst: number | undefined;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly pluginsRegistry: string | undefined;
  /** A kubelet of another root directory on this machine is not in the way. */
  readonly allowKubeletOnMachine: boolean;
  readonly flexVolumePluginDir: string;
  /** False: attaching is the node's own business. */
  readonly controllerAttaches: boolean;
  readonly volumeStatsPeriodMs: number;
  readonly callWindowMs: number;
  /** Gate CSIVolumeHealth. */
  readonly volumeHealth: boolean;
  /** Gate SELinuxMount. */
  readonly selinuxMount: boolean;
  /** Undefined for none; an empty host for every interface. */
  readonly httpEndpoint: { readonly host: string; readonly port: number } | undefined;
  readonly logLevel: LogLevel;
}

export interface NodeProcessWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PromMetrics;
}

/** Every watch and every step listens to the signal of the process: hundreds, where node warns of a leak at 11. */
const LISTENERS_MAX = 10_000;

/** `mooring node`: keeps the mounts of one node equal to what its pods need. Logs to stderr. */
export async function runNode(options: NodeOptions): Promise<void> {
  setMaxListeners(LISTENERS_MAX);
  const shutdown = shutdownSignal();
  const world: NodeProcessWorld = {
    clock: createSystemClock(),
    random: createSystemRandom(),
    log: createPinoLogger({ level: options.logLevel, fields: { component: "node", node: options.nodeName } }),
    metrics: createPromMetrics({ processMetrics: true }),
  };
  const { log } = world;
  const rootDir = resolve(options.rootDir);
  requireMounts("mooring node", "run it as root, on the machine itself");
  await refuseKubelet({ rootDir, allowOnMachine: options.allowKubeletOnMachine });
  const lock = await lockRoot(rootDir);
  try {
    const cluster = await openCluster(world, { ...options, component: "node" });
    try {
      await serve(world, cluster, { ...options, rootDir }, shutdown);
    } finally {
      await cluster.close();
    }
  } finally {
    await lock.release();
  }
  log.info("stopped", { reason: abortReason(shutdown).message });
}

/** Two agents on one root directory would take down each other's mounts. Beside the journal, which only we have. */
async function lockRoot(rootDir: string): Promise<Lock> {
  const directory = join(rootDir, "mooring");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return lockDirectory(directory, { flag: "--root-dir" });
}

async function serve(
  world: NodeProcessWorld,
  { client, server }: ClusterClient,
  options: NodeOptions,
  shutdown: AbortSignal,
): Promise<void> {
  const { rootDir, pluginsRegistry = join(rootDir, "plugins_registry") } = options;
  const agent = await createNodeAgent(world, { ...options, client, pluginsRegistry });
  const heartbeat = createHeartbeat(world.clock);
  const checks = { live: [heartbeat.check], ready: [syncedCheck(agent)] };
  const endpoint = await startEndpoint(world, agent, { checks, options });
  world.log.info("started", { server, rootDir, url: endpoint?.url });
  try {
    await runWithParts([heartbeat], (signal) => agent.run(signal), shutdown);
  } finally {
    await endpoint?.stop();
  }
}

export function syncedCheck({ manager }: NodeAgent): HealthCheck {
  return {
    name: "states-synced",
    problem: () =>
      manager.statesHaveBeenSynced()
        ? undefined
        : (manager.report().problem ?? "disk, pods and the node's status have not all been read yet"),
  };
}

/** Health, metrics and `/debug/volumes`. */
export async function startEndpoint(
  { clock, log, metrics }: NodeProcessWorld,
  { manager }: NodeAgent,
  {
    checks,
    options,
  }: { checks: Parameters<typeof healthRoutes>[0]; options: Pick<NodeOptions, "httpEndpoint"> },
): Promise<HttpEndpoint | undefined> {
  if (options.httpEndpoint === undefined) return undefined;
  const volumes = localOnly((query) => json(manager.report(), { pretty: query.has("pretty") }));
  const routes = { ...healthRoutes(checks), "/metrics": metricsRoute(metrics), "/debug/volumes": volumes };
  return startHttpEndpoint({ clock, log }, { ...options.httpEndpoint, routes });
}
