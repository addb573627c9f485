import { setMaxListeners } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { abortReason } from "../base/clock.ts";
import type { LogLevel } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createPromMetrics, type PromMetrics } from "../base/prom-metrics.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { CsiError } from "../csi/errors.ts";
import type { CallRecord } from "../csi/methods.ts";
import { createCsiServer } from "../csi/server.ts";
import { createLoopDriver, type LoopDriver } from "../driver/driver.ts";
import { withFaults, type Fault } from "../driver/faults.ts";
import { createLinuxHost } from "../driver/linux-host.ts";
import type { DriverOptions } from "../driver/options.ts";
import { requireSecret } from "../driver/secrets.ts";
import { ProcessError } from "./errors.ts";
import { healthRoutes } from "./health.ts";
import { startHttpEndpoint } from "./http-endpoint.ts";
import { lockDirectory } from "./lock.ts";
import { metricsRoute } from "./metrics-page.ts";
import { productVersion } from "./product.ts";
import { aborted, shutdownSignal } from "./shutdown.ts";

export interface DriverProcessOptions extends Omit<DriverOptions, "vendorVersion"> {
  readonly socketPath: string;
  readonly faults: readonly Fault[];
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
  const shutdown = shutdownSignal();
  const clock = createSystemClock();
  const random = createSystemRandom();
  const log = createPinoLogger({
    level: options.logLevel,
    fields: { component: "driver", node: options.nodeId },
  });
  const metrics = createPromMetrics({ processMetrics: true });
  process.on("unhandledRejection", (error) => log.error("unhandled rejection", { error }));
  const lock = await lockState(options);
  try {
    const driver = createLoopDriver(
      { host: createLinuxHost({ clock }), clock, random, log },
      { ...options, stateDir: resolve(options.stateDir), vendorVersion: productVersion() },
    );
    await driver.recover();
    const methods = withFaults({ clock, random, log }, await guarded(driver, options), options.faults);
    const observe = observeCalls(metrics, driver, options.name);
    const deps = { clock, log, observe, logCalls: options.logLevel === "debug" };
    const server = createCsiServer(deps, { socketPath: options.socketPath, served: methods });
    const routes = { ...healthRoutes({ live: [], ready: [] }), "/metrics": metricsRoute(metrics) };
    const endpoint =
      options.httpEndpoint && (await startHttpEndpoint({ clock, log }, { ...options.httpEndpoint, routes }));
    await start(server);
    log.info("started", { socket: options.socketPath, ...driver.counts(), url: endpoint?.url });
    await aborted(shutdown);
    await server.stop({ graceMs: GRACE_MS });
    await endpoint?.stop();
  } finally {
    await lock.release();
  }
  log.info("stopped", { reason: abortReason(shutdown).message });
}

/** The pool belongs to one controller, and each node's records to one node service. */
async function lockState({ stateDir, serves, nodeId }: DriverProcessOptions) {
  const directory = serves === "node" ? join(stateDir, "locks", encodeURIComponent(nodeId)) : stateDir;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  return lockDirectory(directory);
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

/** The histogram of the sidecars, from the other side. */
function observeCalls(
  metrics: PromMetrics,
  driver: LoopDriver,
  driverName: string,
): (call: CallRecord) => void {
  const seconds = metrics.histogram<"driver_name" | "method_name" | "grpc_status_code">({
    name: "csi_plugin_operations_seconds",
    help: "how long calls took, by method and code",
    labels: ["driver_name", "method_name", "grpc_status_code"],
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
  });
  metrics.gauge<"kind">({
    name: "mooring_driver_objects",
    help: "volumes, snapshots, attachments and staged volumes of this driver",
    labels: ["kind"],
    collect: (gauge) => {
      for (const [kind, count] of Object.entries(driver.counts())) gauge.set(count, { kind });
    },
  });
  return ({ path, code, tookMs }) =>
    seconds.observe(tookMs / 1_000, { driver_name: driverName, method_name: path, grpc_status_code: code });
}
