import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { createCaches, type Caches } from "../attach-detach/caches.ts";
import {
  createAttachDetachController,
  type AttachDetachController,
  type AttachDetachDeps,
} from "../attach-detach/controller.ts";
import type { AttachDetachOptions } from "../attach-detach/options.ts";
import { abortReason, type Clock } from "../base/clock.ts";
import type { Logger, LogLevel } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createPromMetrics, type PromMetrics } from "../base/prom-metrics.ts";
import type { Random } from "../base/random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { createLeaseNotes } from "../kube/election/lease-notes.ts";
import { createEventRecorder } from "../kube/events/events.ts";
import type { FlexHost } from "../volumes/plugins/flex-driver.ts";
import { createAttachPlugins } from "./attach-plugins.ts";
import { openCluster, type ClusterClient } from "./cluster-client.ts";
import { healthRoutes, type HealthCheck } from "./health.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { startHttpEndpoint, type HttpEndpoint } from "./http-endpoint.ts";
import { createLeadership, type Leadership, type LeadershipOptions, type Term } from "./leader.ts";
import { metricsRoute } from "./metrics-page.ts";
import { runWithParts } from "./run-parts.ts";
import { shutdownSignal } from "./shutdown.ts";
import { createTermMetrics } from "./term-metrics.ts";
import { volumesRoute } from "./volumes-page.ts";

export interface ControllerOptions extends Omit<AttachDetachOptions, "timersNamespace"> {
  readonly kubeconfig: string | undefined;
  readonly qps: number | undefined;
  readonly burst: number | undefined;
  readonly leaderElection: LeadershipOptions;
  /** Undefined for none; an empty host for every interface. */
  readonly httpEndpoint: { readonly host: string; readonly port: number } | undefined;
  readonly logLevel: LogLevel;
  readonly flexVolumePluginDir: string;
  /** Another machine than this one. */
  readonly flexHost?: FlexHost | undefined;
}

/** Upstream's: whoever filters events by their source keeps finding them. */
const EVENT_SOURCE = "attachdetach-controller";

interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PromMetrics;
  /** Of the machine it runs on, unless told otherwise. */
  readonly hostname?: string;
}

/**
 * Every worker and every request listens to the signal of its term: dozens, where node warns of a leak at 11. A real leak
 * would be thousands.
 */
const LISTENERS_MAX = 1_000;

/** `mooring controller`: attaches and detaches until the operating system asks it to end. Logs to stderr. */
export async function runController(options: ControllerOptions): Promise<void> {
  setMaxListeners(LISTENERS_MAX);
  const shutdown = shutdownSignal();
  const world: World = {
    clock: createSystemClock(),
    random: createSystemRandom(),
    log: createPinoLogger({ level: options.logLevel, fields: { component: "controller" } }),
    metrics: createPromMetrics({ processMetrics: true }),
  };
  const { log } = world;
  const cluster = await openCluster(world, { ...options, component: "controller" });
  try {
    const process = createControllerProcess(world, cluster, options);
    const endpoint = await startEndpoint(world, process, options);
    log.info("started", {
      server: cluster.server,
      identity: process.leadership.identity,
      url: endpoint?.url,
    });
    try {
      await process.run(shutdown);
    } finally {
      await endpoint?.stop();
    }
  } finally {
    await cluster.close();
  }
  log.info("stopped", { reason: abortReason(shutdown).message });
}

export interface ControllerProcess {
  readonly leadership: Leadership;
  readonly checks: { readonly live: readonly HealthCheck[]; readonly ready: readonly HealthCheck[] };
  /** The controller of the present term. */
  readonly current: () => AttachDetachController | undefined;
  /** It knows the whole cluster, and stands for the lease. */
  whenSynced(signal: AbortSignal): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

/** Everything of the process but its socket and its signals. */
export function createControllerProcess(
  world: World,
  { client, eventClient, leaseClient, leaderClient }: ClusterClient,
  options: ControllerOptions,
): ControllerProcess {
  const { clock, random, log, metrics, hostname: host = hostname() } = world;
  const caches = createCaches({ client, clock, random: random.fork("caches"), log, metrics });
  const source = { component: EVENT_SOURCE, host };
  const events = createEventRecorder(
    { ...world, client: eventClient, random: random.fork("events") },
    source,
  );
  const { resourceNamespace: namespace, resourceName: name, enabled } = options.leaderElection;
  const notes = createLeaseNotes(leaseClient, { namespace, name });
  const leadership = createLeadership(
    {
      client: notes.client,
      clock,
      random: random.fork("election"),
      log,
      metrics,
      events,
      hostname: host,
    },
    options.leaderElection,
  );
  let current: AttachDetachController | undefined;
  const onChange = () => current?.pluginsChanged();
  const plugins = createAttachPlugins({ clock, log }, { ...options, onChange });
  const heartbeat = createHeartbeat(clock);

  async function work(term: Term): Promise<void> {
    const termMetrics = createTermMetrics(metrics);
    current = createTermController(
      {
        ...world,
        metrics: termMetrics.metrics,
        client: leaderClient(term.mayAct),
        caches,
        events,
        plugins: () => plugins.plugins(),
        // Alone, without an election, there is no Lease that anybody renews.
        notes: enabled ? notes : undefined,
      },
      term,
      options,
    );
    try {
      await current.run(term.signal);
    } finally {
      current = undefined;
      termMetrics.end();
    }
  }

  /** A replica that cannot see the whole cluster does not stand: it would keep the lease from one that can. */
  async function stand(stop: AbortSignal): Promise<void> {
    try {
      await Promise.all([plugins.prepare(stop), caches.whenSynced(stop)]);
    } catch (error) {
      if (!stop.aborted) throw error;
    }
    await runWithParts([plugins], (signal) => leadership.run(work, signal), stop);
  }

  return {
    leadership,
    checks: { live: [leadership.check, heartbeat.check], ready: [syncCheck(caches)] },
    current: () => current,
    whenSynced: (signal) => caches.whenSynced(signal),
    run: (signal) => runWithParts([caches, events, heartbeat], stand, signal),
  };
}

function createTermController(
  deps: Omit<AttachDetachDeps, "mayAct">,
  { mayAct }: Term,
  options: ControllerOptions,
): AttachDetachController {
  return createAttachDetachController(
    { ...deps, random: deps.random.fork("attach-detach"), mayAct },
    {
      disableReconcileSync: options.disableReconcileSync,
      reconcileSyncPeriodMs: options.reconcileSyncPeriodMs,
      disableForceDetachOnTimeout: options.disableForceDetachOnTimeout,
      detachPolicies: options.detachPolicies,
      timersNamespace: options.leaderElection.resourceNamespace,
    },
  );
}

/** Ready means ready to take over: a replica that waits with complete caches is. */
function syncCheck(caches: Caches): HealthCheck {
  const { pods, nodes, claims, volumes, attachments, drivers } = caches;
  const informers = { pods, nodes, claims, volumes, attachments, drivers };
  return {
    name: "informer-sync",
    problem() {
      const waiting = Object.entries(informers).filter(([, informer]) => !informer.hasSynced());
      return waiting.length === 0
        ? undefined
        : `not complete yet: ${waiting.map(([name]) => name).join(", ")}`;
    },
  };
}

/** Health, metrics and `/debug/volumes`. */
export async function startEndpoint(
  { clock, log, metrics }: World,
  { checks, leadership, current }: ControllerProcess,
  { httpEndpoint }: Pick<ControllerOptions, "httpEndpoint">,
): Promise<HttpEndpoint | undefined> {
  if (httpEndpoint === undefined) return undefined;
  const volumes = volumesRoute({
    report: (filter) => current()?.report(filter),
    leader: () => ({ identity: leadership.identity, holder: leadership.holder() }),
    now: () => clock.wall(),
  });
  const routes = { ...healthRoutes(checks), "/metrics": metricsRoute(metrics), "/debug/volumes": volumes };
  return startHttpEndpoint({ clock, log }, { ...httpEndpoint, routes });
}
