import { readFile, writeFile } from "node:fs/promises";
import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { withEither } from "../base/signals.ts";
import { createAttacherCaches, type AttacherCaches } from "../attacher/caches.ts";
import { whenConnected } from "../attacher/connect.ts";
import { createAttacher, type Attacher } from "../attacher/controller.ts";
import { createCsiDriver } from "../attacher/csi-driver.ts";
import type { ControllerDriver, DriverFacts } from "../attacher/driver.ts";
import { AttacherError } from "../attacher/errors.ts";
import { introduce } from "../attacher/handshake.ts";
import { measureDriver } from "../attacher/metrics.ts";
import { leaseNameOf, sanitize } from "../attacher/names.ts";
import { DEFAULT_ATTACHER_OPTIONS, type AttacherOptions } from "../attacher/options.ts";
import { abortReason, type Clock } from "../base/clock.ts";
import type { Logger, LogLevel } from "../base/log.ts";
import { createPromMetrics, type PromMetrics } from "../base/prom-metrics.ts";
import type { Random } from "../base/random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { parseEndpoint } from "../csi/endpoint.ts";
import { createGrpcChannel } from "../csi/grpc-channel.ts";
import type { CallRecord, Channel } from "../csi/methods.ts";
import { createElector, type Elector } from "../kube/election/elector.ts";
import { createEventRecorder, type EventRecorder } from "../kube/events/events.ts";
import { attachmentsRoute, type ReportingDriver } from "./attachments-page.ts";
import { openCluster, type ClusterClient } from "./cluster-client.ts";
import { ProcessError } from "./errors.ts";
import { healthRoutes, type HealthCheck } from "./health.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { startHttpEndpoint, type HttpEndpoint } from "./http-endpoint.ts";
import { metricsRoute } from "./metrics-page.ts";
import { runWithParts } from "./run-parts.ts";
import { shutdownSignal } from "./shutdown.ts";
import { createTermMetrics } from "./term-metrics.ts";
import { createProcessLogger, type LogFormat } from "./text-log.ts";

export interface AttacherProcessOptions extends Omit<AttacherOptions, "queueSuffix" | "drainMs"> {
  /** One driver each. */
  readonly csiAddresses: readonly string[];
  readonly kubeconfig: string | undefined;
  readonly qps: number | undefined;
  readonly burst: number | undefined;
  readonly resyncMs: number;
  readonly leaderElection: {
    readonly enabled: boolean;
    /** Undefined for that of the pod. */
    readonly namespace: string | undefined;
    readonly leaseDurationMs: number;
    readonly renewDeadlineMs: number;
    readonly retryPeriodMs: number;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly httpEndpoint: { readonly host: string; readonly port: number } | undefined;
  readonly metricsPath: string;
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Requests and answers are logged, redacted. */
  readonly logCalls: boolean;
  /** Of one answer in the log; 0 and less mean no limit. */
  readonly answerCharsMax: number;
  /** Called once every driver has introduced itself and the cluster is known, with where it answers. */
  readonly onReady?: (url: string | undefined) => void;
}

interface World {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PromMetrics;
  /** Of the machine it runs on, unless told otherwise. */
  readonly hostname?: string;
  /** To a driver's socket; over gRPC unless told otherwise. */
  readonly connect?: (socketPath: string) => Channel;
  /** Where Kubernetes looks for the reason of an end; its file in the container unless told otherwise. */
  readonly tellEnd?: (text: string) => Promise<void>;
  /** Called once with the drivers that it serves, for whoever wants to know what their attachments wait for. */
  readonly onDrivers?: (drivers: readonly ReportingDriver[]) => void;
}

/** A driver that has introduced itself, and how to let go of it. */
interface OpenDriver {
  readonly address: string;
  readonly channel: Channel;
  readonly driver: ControllerDriver;
  readonly facts: DriverFacts;
}

/** Every worker and every request listens to the signal of its term. */
const LISTENERS_MAX = 1_000;
const TERMINATION_LOG = "/dev/termination-log";
const NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/** `mooring attacher`: works until the operating system asks it to end, a driver or a lease is lost. Logs to stderr. */
export async function runAttacher(options: AttacherProcessOptions): Promise<void> {
  setMaxListeners(LISTENERS_MAX);
  const shutdown = shutdownSignal();
  const world: World = {
    clock: createSystemClock(),
    random: createSystemRandom(),
    log: createProcessLogger({
      level: options.logLevel,
      format: options.logFormat,
      fields: { component: "attacher" },
    }),
    metrics: createPromMetrics({ processMetrics: true }),
  };
  warnOfThrottle(world.log, options);
  const cluster = await openCluster(world, { ...options, component: "attacher" });
  try {
    await attachUntil(shutdown, world, cluster, options);
  } finally {
    await cluster.close();
  }
  world.log.info("stopped", { reason: abortReason(shutdown).message });
}

/** Everything of the process but its signals: from the first word to the drivers to the end of the last operation. */
export async function attachUntil(
  shutdown: AbortSignal,
  world: World,
  cluster: ClusterClient,
  options: AttacherProcessOptions,
): Promise<void> {
  const open: Channel[] = [];
  try {
    const drivers = await Promise.all(
      options.csiAddresses.map((address) => openDriver(world, { ...options, address, open }, shutdown)),
    );
    await serveDrivers(world, { cluster, drivers }, options, shutdown);
  } catch (error) {
    if (!shutdown.aborted) throw error;
  } finally {
    for (const channel of open) channel.close();
  }
}

/** Each attach and each detach costs two writes; workers that wait for the rate are workers for nothing. */
function warnOfThrottle(log: Logger, { workers, qps }: AttacherProcessOptions): void {
  if (qps === undefined || workers <= 4 * qps) return;
  log.warn("--kube-api-qps is too low for --worker-threads: an attach costs two writes", { workers, qps });
}

async function openDriver(
  { clock, log, metrics, connect }: World,
  options: AttacherProcessOptions & { readonly address: string; readonly open: Channel[] },
  signal: AbortSignal,
): Promise<OpenDriver> {
  const { address, timeoutMs, logCalls, answerCharsMax, open } = options;
  const observe = ({ path, code, tookMs }: CallRecord) =>
    log.debug("called the driver", { path, code, tookMs });
  const socketPath = parseEndpoint(address);
  const channel =
    connect?.(socketPath) ??
    createGrpcChannel({ clock, observe, log, logCalls }, { socketPath, answerCharsMax });
  open.push(channel);
  try {
    await whenConnected({ channel, clock, log }, { address, signal });
    const driver = createCsiDriver({ channel, clock });
    const measured = measureDriver(driver, { clock, metrics });
    const facts = await introduce({ driver: measured, clock, log }, { timeoutMs, signal });
    return { address, channel, facts, driver: measureDriver(driver, { clock, metrics }, facts.name) };
  } catch (error) {
    if (!(error instanceof AttacherError)) throw error;
    throw new ProcessError("NotWorking", error.message, { cause: error });
  }
}

async function serveDrivers(
  world: World,
  { cluster, drivers }: { cluster: ClusterClient; drivers: readonly OpenDriver[] },
  options: AttacherProcessOptions,
  shutdown: AbortSignal,
): Promise<void> {
  refuseTwins(drivers);
  const { clock, random, log, metrics } = world;
  const { client } = cluster;
  const { resyncMs } = options;
  const caches = createAttacherCaches(
    { client, clock, random: random.fork("caches"), log, metrics },
    { resyncMs },
  );
  const events = createEventRecorder(
    { ...world, client: cluster.eventClient, random: random.fork("events") },
    { component: "external-attacher-leader-election", host: world.hostname ?? hostname() },
  );
  const heartbeat = createHeartbeat(clock);
  const shared = { world, cluster, caches, events, options, several: drivers.length > 1 };
  const services = await Promise.all(drivers.map((driver) => createService(shared, driver)));
  world.onDrivers?.(services);
  const checks = leaderChecks(services);
  const parts = { checks: [...checks, heartbeat.check], caches, services };
  const endpoint = await startEndpoint(world, parts, options);
  log.info("started", {
    server: cluster.server,
    drivers: drivers.map(({ facts }) => facts.name),
    url: endpoint?.url,
  });
  const work = async (signal: AbortSignal) => {
    const ready = () => options.onReady?.(endpoint?.url);
    void caches.whenSynced(signal).then(ready, () => undefined);
    await runAll(services, signal);
  };
  try {
    await runWithParts([caches, events, heartbeat], work, shutdown);
  } finally {
    await endpoint?.stop();
  }
}

/** Two sockets of one driver would be two attachers that know nothing of each other. */
function refuseTwins(drivers: readonly OpenDriver[]): void {
  const names = drivers.map(({ facts }) => facts.name);
  const twin = names.find((name, index) => names.indexOf(name) !== index);
  if (twin === undefined) return;
  const where = drivers.filter(({ facts }) => facts.name === twin).map(({ address }) => address);
  throw new ProcessError(
    "NotWorking",
    `driver ${twin} answers at ${where.join(" and at ")}; give one of them`,
  );
}

interface Service extends ReportingDriver {
  /** Absent where nobody is elected. */
  readonly elector: Elector | undefined;
  run(signal: AbortSignal): Promise<void>;
}

/** What one loses ends all: whoever restarts the process has the drivers connected anew and stood for again. */
async function runAll(services: readonly Service[], signal: AbortSignal): Promise<void> {
  const failed = new AbortController();
  const ends = await withEither([signal, failed.signal], (either) =>
    Promise.allSettled(
      services.map((service) =>
        service.run(either).catch((error: unknown) => {
          failed.abort(error);
          throw error;
        }),
      ),
    ),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

interface Shared {
  readonly world: World;
  readonly cluster: ClusterClient;
  readonly caches: AttacherCaches;
  readonly events: EventRecorder;
  readonly options: AttacherProcessOptions;
  readonly several: boolean;
}

/** One driver: its lease, and the work while that is held. */
async function createService(shared: Shared, { channel, driver, facts }: OpenDriver): Promise<Service> {
  const { world, cluster, caches, options, several } = shared;
  const { clock, metrics } = world;
  const log = world.log;
  const queueSuffix = several ? `-${sanitize(facts.name)}` : "";
  const { drainMs } = DEFAULT_ATTACHER_OPTIONS;
  let current: Attacher | undefined;

  async function work(signal: AbortSignal, mayAct: () => boolean): Promise<void> {
    const term = createTermMetrics(metrics);
    const deps = { client: cluster.client, caches, driver, facts, clock, log, metrics: term.metrics, mayAct };
    try {
      current = createAttacher(deps, { ...options, queueSuffix, drainMs });
      await current.run(signal);
    } finally {
      current = undefined;
      term.end();
    }
  }

  const elector = options.leaderElection.enabled ? await createDriverElector(shared, facts) : undefined;
  async function lead(signal: AbortSignal): Promise<void> {
    // Also while the end is under way: the lease is renewed until what was begun has ended.
    if (elector === undefined) return work(signal, () => true);
    const end = await elector.run((term) => work(term, () => elector.isLeader()), signal);
    if (end.kind !== "lost") return;
    throw new ProcessError("NotWorking", `lost the lease of driver ${facts.name}; the next leader goes on`);
  }

  return {
    elector,
    driver: facts.name,
    report: (filter) => current?.report(filter),
    leader: () => elector && { identity: elector.identity, holder: elector.holder() },
    async run(signal) {
      const lost = new AbortController();
      const stopListening = channel.onLost(() => lost.abort(lostDriver(facts.name)));
      try {
        await withEither([signal, lost.signal], lead);
      } finally {
        stopListening();
      }
      if (!lost.signal.aborted) return;
      // The driver may come back as another one, with other capabilities: a fresh start asks it again.
      const tell = world.tellEnd ?? ((text: string) => writeFile(TERMINATION_LOG, text));
      await tell("Lost connection to CSI driver, exiting").catch(() => undefined);
      throw lostDriver(facts.name);
    },
  };
}

function lostDriver(name: string): ProcessError {
  return new ProcessError("NotWorking", `Lost connection to CSI driver, exiting: ${name}`);
}

/** One for all drivers, under the name that upstream's probe asks for; none where nobody is elected. */
function leaderChecks(services: readonly Service[]): readonly HealthCheck[] {
  const electors = services.flatMap(({ elector }) => elector ?? []);
  if (electors.length === 0) return [];
  return [
    {
      name: "leader-election",
      problem() {
        const stuck = electors.map((elector) => elector.health()).find(({ kind }) => kind === "stuck");
        return stuck?.kind === "stuck" ? stuck.message : undefined;
      },
    },
  ];
}

async function createDriverElector(
  { world, cluster, events, options }: Shared,
  { name }: DriverFacts,
): Promise<Elector> {
  const { enabled: _, namespace, ...times } = options.leaderElection;
  return createElector(
    { ...world, client: cluster.leaseClient, random: world.random.fork(`election ${name}`), events },
    {
      ...times,
      name: leaseNameOf(name),
      namespace: namespace ?? (await podNamespace()),
      host: sanitize(world.hostname ?? hostname()),
    },
  );
}

async function podNamespace(): Promise<string> {
  const fromEnvironment = process.env["POD_NAMESPACE"];
  if (fromEnvironment) return fromEnvironment;
  const fromFile = await readFile(NAMESPACE_FILE, "utf8").catch(() => "");
  return fromFile.trim() || "default";
}

async function startEndpoint(
  { clock, log, metrics }: World,
  parts: { checks: readonly HealthCheck[]; caches: AttacherCaches; services: readonly Service[] },
  { httpEndpoint, metricsPath }: AttacherProcessOptions,
): Promise<HttpEndpoint | undefined> {
  if (httpEndpoint === undefined) return undefined;
  const { checks, caches, services } = parts;
  const sync: HealthCheck = {
    name: "informer-sync",
    problem: () => (caches.hasSynced() ? undefined : "not complete yet"),
  };
  const routes = {
    ...healthRoutes({ live: checks, ready: [sync] }),
    [metricsPath]: metricsRoute(metrics),
    "/debug/attachments": attachmentsRoute(services, () => clock.wall()),
  };
  return startHttpEndpoint({ clock, log }, { ...httpEndpoint, routes });
}
