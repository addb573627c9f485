import { setMaxListeners } from "node:events";
import { readdir, readFile, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { abortReason, type Clock } from "../base/clock.ts";
import type { Logger, LogLevel } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createPromMetrics, type PromMetrics } from "../base/prom-metrics.ts";
import type { Random } from "../base/random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { CsiError } from "../csi/errors.ts";
import type { CallRecord, ServedMethod } from "../csi/methods.ts";
import { createCsiServer, type CsiServer } from "../csi/server.ts";
import { nodeDirectoryName, pathsOf } from "../driver/context.ts";
import { createLoopDriver, type LoopDriver } from "../driver/driver.ts";
import { withFaults, type Fault } from "../driver/faults.ts";
import type { Host } from "../driver/host.ts";
import { createLinuxHost } from "../driver/linux-host.ts";
import type { DriverOptions } from "../driver/options.ts";
import { requireSecret } from "../driver/secrets.ts";
import { systemCode } from "../kube/config/world.ts";
import { makeDirectory } from "./data-directory.ts";
import { createDriverMetrics } from "./driver-metrics.ts";
import { createRegistrationServer } from "./driver-registration.ts";
import { explainStart } from "./disk-problems.ts";
import { ProcessError } from "./errors.ts";
import { json, localOnly } from "./endpoint.ts";
import { healthRoutes } from "./health.ts";
import { startHttpEndpoint } from "./http-endpoint.ts";
import { lockDirectory, type Lock } from "./lock.ts";
import { metricsRoute } from "./metrics-page.ts";
import { requireMounts } from "./mount-rights.ts";
import { productVersion } from "./product.ts";
import { aborted, shutdownSignal } from "./shutdown.ts";

export interface DriverProcessOptions extends Omit<DriverOptions, "vendorVersion"> {
  readonly socketPath: string;
  readonly faults: readonly Fault[];
  /** The CSI socket as kubelet sees it; given, the driver registers itself. */
  readonly kubeletRegistrationPath: string | undefined;
  /** The folder that kubelet watches. */
  readonly pluginRegistrationPath: string;
  /** Holds the value that calls must carry among their secrets. */
  readonly requireSecretFile: string | undefined;
  readonly httpEndpoint: { readonly host: string; readonly port: number } | undefined;
  readonly logLevel: LogLevel;
}

/** Calls under way when the end is asked for are allowed this much: a mkfs or a copy should not be cut off. */
const GRACE_MS = 30_000;
const LISTENERS_MAX = 1_000;

/** `mooring driver`: serves CSI on a unix socket until told to end. Mounts and devices stay: workloads use them. */
export async function runDriver(options: DriverProcessOptions): Promise<void> {
  setMaxListeners(LISTENERS_MAX);
  // Volumes are made, attached and copied without root; staging them is not.
  if (options.serves !== "controller")
    requireMounts(
      "the node service of mooring driver",
      "run it as root, or with --serve controller where another process stages",
    );
  const shutdown = shutdownSignal();
  const clock = createSystemClock();
  const random = createSystemRandom();
  const log = createPinoLogger({
    level: options.logLevel,
    fields: { component: "driver", node: options.nodeId },
  });
  const service = await startDriver(
    {
      clock,
      random,
      log,
      host: createLinuxHost({ clock }),
      metrics: createPromMetrics({ processMetrics: true }),
    },
    options,
  );
  process.on("unhandledRejection", (error) => {
    log.error("unhandled rejection", { error });
    service.defect("unhandled rejection");
  });
  try {
    await Promise.race([aborted(shutdown), aborted(service.refused)]);
  } finally {
    await service.stop();
  }
  if (service.refused.aborted) {
    const why = abortReason(service.refused).message;
    throw new ProcessError("NotWorking", `kubelet refused the registration of ${options.name}: ${why}`);
  }
  log.info("stopped", { reason: abortReason(shutdown).message });
}

interface DriverWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: PromMetrics;
  readonly host: Host;
}

export interface DriverService {
  /** Aborts when a kubelet refuses the registration. */
  readonly refused: AbortSignal;
  /** Something failed that no call answers for; `/readyz` says so. */
  defect(what: string): void;
  /** Calls under way may finish. */
  stop(): Promise<void>;
}

/** Recovers what an earlier life left, then answers on its socket. */
export async function startDriver(world: DriverWorld, options: DriverProcessOptions): Promise<DriverService> {
  const { clock, random, log, host } = world;
  const locks = await lockState(options).catch(async (error: unknown) => {
    throw await explainStart(resolve(options.stateDir), error);
  });
  const unlock = async () => {
    for (const lock of locks) await lock.release();
  };
  try {
    const driver = createLoopDriver(
      { host, clock, random, log },
      { ...options, stateDir: resolve(options.stateDir), vendorVersion: productVersion() },
    );
    const methods = withFaults({ clock, random, log }, await guarded(driver, options), options.faults);
    const serving = await serve(world, { driver, methods, options });
    return { ...serving, stop: () => serving.stop().finally(unlock) };
  } catch (error) {
    await unlock();
    throw await explainStart(resolve(options.stateDir), error);
  }
}

interface Serving {
  readonly driver: LoopDriver;
  readonly methods: readonly ServedMethod[];
  readonly options: DriverProcessOptions;
}

async function serve(
  { clock, log, metrics: registry }: DriverWorld,
  { driver, methods, options }: Serving,
): Promise<DriverService> {
  const metrics = createDriverMetrics(registry, driver, options.name);
  const observe = (call: CallRecord) => {
    metrics.observe(call);
    driver.observe(call);
  };
  const deps = { clock, log, observe, logCalls: options.logLevel === "debug", checkLimits: true };
  const server = createCsiServer(deps, { socketPath: options.socketPath, served: methods });
  const ready = { name: "driver", problem: () => driver.problem() };
  const routes = {
    ...healthRoutes({ live: [], ready: [ready] }),
    "/metrics": metricsRoute(metrics.scraped),
    "/debug/damaged": localOnly(async () => json({ damaged: await driver.damaged() }, { pretty: true })),
  };
  // Before the recovery, which may take a while: /readyz says that it is at work.
  const endpoint =
    options.httpEndpoint && (await startHttpEndpoint({ clock, log }, { ...options.httpEndpoint, routes }));
  const refused = new AbortController();
  const registration = registrationOf({ clock, log }, options, (error) => refused.abort(new Error(error)));
  const stop = async () => {
    await registration?.stop({ graceMs: 1_000 });
    await server.stop({ graceMs: GRACE_MS });
    await endpoint?.stop();
  };
  try {
    await driver.recover();
    await makeSocketFolders(options);
    await start(server);
    if (registration !== undefined) await start(registration);
  } catch (error) {
    await stop();
    throw error;
  }
  log.info("started", { socket: options.socketPath, ...driver.counts(), url: endpoint?.url });
  const defect = (path: string) => driver.observe({ path, code: "INTERNAL", tookMs: 0, unexpected: true });
  return { refused: refused.signal, defect, stop };
}

/** `/run` is empty after every boot, and who watches the registration folder may come later than its drivers. */
async function makeSocketFolders(options: DriverProcessOptions): Promise<void> {
  const { socketPath, kubeletRegistrationPath, pluginRegistrationPath } = options;
  const registration = kubeletRegistrationPath === undefined ? [] : [pluginRegistrationPath];
  for (const folder of [dirname(socketPath), ...registration]) {
    try {
      await makeDirectory(folder, 0o750);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ProcessError("BadAddress", `cannot make ${folder} for a socket: ${why}`, { cause: error });
    }
  }
}

function registrationOf(
  deps: { readonly clock: Clock; readonly log: Logger },
  { name, kubeletRegistrationPath, pluginRegistrationPath }: DriverProcessOptions,
  onRefused: (error: string) => void,
): CsiServer | undefined {
  if (kubeletRegistrationPath === undefined) return undefined;
  const wanted = { driverName: name, kubeletPath: kubeletRegistrationPath, folder: pluginRegistrationPath };
  return createRegistrationServer(deps, wanted, onRefused);
}

/** The pool belongs to one controller, and each node's records to one node service; `all` is both. */
async function lockState(options: DriverProcessOptions): Promise<readonly Lock[]> {
  const { stateDir, serves, nodeId } = options;
  const node = join(stateDir, "locks", nodeDirectoryName(nodeId));
  const directories = [...(serves === "node" ? [] : [stateDir]), ...(serves === "controller" ? [] : [node])];
  const locks: Lock[] = [];
  try {
    for (const directory of directories) {
      await makeDirectory(directory);
      locks.push(await lockOnFullDisk(directory, options));
    }
    return locks;
  } catch (error) {
    for (const lock of locks) await lock.release();
    throw error;
  }
}

/** A lock is a new file. Where there is no room for one, two spares of the reserve make it: a start must not fail for that. */
async function lockOnFullDisk(directory: string, options: DriverProcessOptions): Promise<Lock> {
  const { stateDir, nodeId, serves = "all" } = options;
  try {
    return await lockDirectory(directory, { flag: "--statedir" });
  } catch (error) {
    const { reserve } = pathsOf({ stateDir: resolve(stateDir), nodeId, serves });
    const spares = systemCode(error) === "ENOSPC" ? await readdir(reserve) : [];
    if (spares.length === 0) throw error;
    for (const name of spares.slice(0, 2)) await unlink(join(reserve, name));
    return lockDirectory(directory, { flag: "--statedir" });
  }
}

async function guarded(driver: LoopDriver, { requireSecretFile: file }: DriverProcessOptions) {
  if (file === undefined) return driver.methods;
  try {
    return requireSecret(driver.methods, (await readFile(file, "utf8")).trim());
  } catch (error) {
    throw new ProcessError("BadFile", `cannot read ${file} (--require-secret-file)`, { cause: error });
  }
}

async function start(server: { start(): Promise<void> }): Promise<void> {
  try {
    await server.start();
  } catch (error) {
    if (error instanceof CsiError) throw new ProcessError("BadAddress", error.detail, { cause: error });
    throw error;
  }
}
