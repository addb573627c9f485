import { setMaxListeners } from "node:events";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { abortReason } from "../base/clock.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { stopInTime, type ApiServerDeps } from "./apiserver.ts";
import { askPages } from "./cluster-view.ts";
import { openDataDirectory } from "./data-directory.ts";
import { ProcessError } from "./errors.ts";
import { createFileLogger } from "./logs.ts";
import { exampleFile } from "./product.ts";
import type { Report, StepDeps } from "./progress.ts";
import { aborted, shutdownSignal } from "./shutdown.ts";
import { startCluster, type Cluster, type ClusterOptions } from "./up/cluster.ts";
import { pagesOf } from "./up/endpoints.ts";
import { applyOnce, readManifest, type NotReady } from "./up/once.ts";

/** What a person sees of it. */
export interface Display {
  readonly report: Report;
  readonly slow: NonNullable<StepDeps["slow"]>;
  /** Everything works. `logFile` is absent where logs go to stderr. */
  ready(info: ReadyInfo): void;
  /** An object of `--once` is as wanted. */
  readonly applied: (label: string, state: string, tookMs: number) => void;
  /** One that is not, and why. */
  late(problem: NotReady, nowMs: number): void;
  stopping(reason: string): void;
  stopped(): void;
}

export interface ReadyInfo {
  readonly url: string;
  readonly kubeconfig: string;
  /** Where the controller says what it waits for. */
  readonly debugUrl: string;
  readonly logFile: string | undefined;
  /** A manifest to begin with. */
  readonly example: string;
  /** Whether there is one to apply it with. */
  readonly hasKubectl: boolean;
}

export interface AllInOneOptions extends ClusterOptions {
  /** Logs to stderr instead of the data directory. */
  readonly verbose: boolean;
  /** Apply this file, wait, and end. */
  readonly once: string | undefined;
  /** How long each step of that file may take. */
  readonly timeoutMs: number;
}

/** For the last lines to be written. */
const LEAVE_MS = 500;

/** Every watch, worker and step of every part listens to a signal of the process. */
const LISTENERS_MAX = 10_000;

/**
 * `mooring up`: a cluster on one machine, in one process, until the operating system asks it to end; with `once`, until what
 * the file asks for is there. Answers whether it was. `unwanted` ends it too.
 */
export async function runAllInOne(
  options: AllInOneOptions,
  display: Display,
  unwanted: AbortSignal,
): Promise<boolean> {
  setMaxListeners(LISTENERS_MAX);
  const shutdown = AbortSignal.any([shutdownSignal(), unwanted]);
  // Before anything is started: a file with a mistake in it should cost nothing.
  const manifest = options.once === undefined ? undefined : await readManifest(options.once);
  const { log, file } = options.verbose
    ? { log: createPinoLogger(), file: undefined }
    : createFileLogger(await openDataDirectory(options.dataDir));
  const { report, slow } = display;
  const deps = { clock: createSystemClock(), random: createSystemRandom(), log, report, slow };
  const cluster = await startUnlessAborted(deps, options, shutdown);
  if (cluster === undefined) {
    display.stopping(abortReason(shutdown).message);
    display.stopped();
    // Whatever a start that was called off still waits for, it is over: nothing is mounted, and nothing was acknowledged.
    setTimeout(() => process.exit(), LEAVE_MS).unref();
    return manifest === undefined;
  }
  const { url, kubeconfig } = cluster.apiServer;
  log.info("serving", { url, kubeconfigFile: kubeconfig });
  const stop = () => stopInTime({ ...deps, exit: (code) => process.exit(code) }, cluster);
  try {
    if (manifest === undefined) {
      const debugUrl = cluster.endpoints.controller;
      if (!shutdown.aborted)
        display.ready({ url, kubeconfig, debugUrl, logFile: file, ...(await firstSteps()) });
      await Promise.race([aborted(shutdown), aborted(cluster.failed)]);
      throwIfFailed(cluster, file);
      log.info("stopping", { reason: abortReason(shutdown).message });
      display.stopping(abortReason(shutdown).message);
      return true;
    }
    const signal = AbortSignal.any([shutdown, cluster.failed]);
    const waits = () => askPages({ pages: [], found: pagesOf(cluster.endpoints) });
    const commands = { kubeconfig };
    const onceDeps = { ...deps, client: cluster.client, report: display.applied, waits, commands };
    const late = await applyOnce(onceDeps, manifest, { timeoutMs: options.timeoutMs, signal });
    for (const problem of late) display.late(problem, deps.clock.wall().getTime());
    return late.length === 0;
  } catch (error) {
    throwIfFailed(cluster, file);
    if (!shutdown.aborted) throw error;
    display.stopping(abortReason(shutdown).message);
    return false;
  } finally {
    await stop();
    log.info("stopped");
    display.stopped();
  }
}

/** Undefined where the end was asked for meanwhile; then nothing is left of it, or the process ends after a while. */
async function startUnlessAborted(
  deps: ApiServerDeps,
  options: AllInOneOptions,
  shutdown: AbortSignal,
): Promise<Cluster | undefined> {
  const starting = startCluster(deps, options, shutdown);
  void aborted(shutdown).then(() =>
    stopInTime({ ...deps, exit: (code) => process.exit(code) }, { stop: () => starting.then(noop, noop) }),
  );
  try {
    return await starting;
  } catch (error) {
    if (shutdown.aborted) return undefined;
    throw error;
  }
}

function noop(): void {
  // How it ended is told elsewhere.
}

function throwIfFailed({ failed }: Cluster, logFile: string | undefined): void {
  if (!failed.aborted) return;
  const where = logFile === undefined ? "its log says more" : `${logFile} says more`;
  throw new ProcessError("NotWorking", `${abortReason(failed).message}; everything was stopped, ${where}`);
}

async function firstSteps(): Promise<Pick<ReadyInfo, "example" | "hasKubectl">> {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const found = await Promise.all(
    folders.map((folder) =>
      access(join(folder, "kubectl"), constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  return { example: exampleFile("claim-and-pod.yaml"), hasKubectl: found.includes(true) };
}
