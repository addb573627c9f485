import { abortReason } from "../base/clock.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import { createHttpTransport } from "../kube/transport/http-transport.ts";
import { loadChangingAccess } from "../kube/config/changing.ts";
import type { Transport } from "../kube/transport/transport.ts";
import {
  startApiServer,
  stopInTime,
  type ApiServer,
  type ApiServerDeps,
  type ApiServerOptions,
} from "./apiserver.ts";
import { openDataDirectory } from "./data-directory.ts";
import { ProcessError } from "./errors.ts";
import { createLocalWorld } from "./local-world.ts";
import { createFileLogger } from "./logs.ts";
import { productVersion } from "./product.ts";
import { step, type Report } from "./progress.ts";
import { aborted, shutdownSignal } from "./shutdown.ts";

/** What a person sees of it. */
export interface Display {
  readonly report: Report;
  /** Everything works. `logFile` is absent where logs go to stderr. */
  ready(info: {
    readonly url: string;
    readonly kubeconfig: string;
    readonly logFile: string | undefined;
  }): void;
  stopping(reason: string): void;
  stopped(): void;
}

/** `mooring up`: a cluster on one machine, in one process, until the operating system asks it to end. */
export async function runAllInOne(options: AllInOneOptions, display: Display): Promise<void> {
  const shutdown = shutdownSignal();
  const { log, file } = options.verbose
    ? { log: createPinoLogger(), file: undefined }
    : createFileLogger(await openDataDirectory(options.dataDir));
  const deps = { clock: createSystemClock(), random: createSystemRandom(), log, report: display.report };
  const cluster = await startAllInOne(deps, options);
  const { url, kubeconfig } = cluster.apiServer;
  log.info("serving", { url, kubeconfigFile: kubeconfig });
  if (!shutdown.aborted) display.ready({ url, kubeconfig, logFile: file });
  await aborted(shutdown);
  log.info("stopping", { reason: abortReason(shutdown).message });
  display.stopping(abortReason(shutdown).message);
  await stopInTime({ ...deps, exit: (code) => process.exit(code) }, cluster);
  log.info("stopped");
  display.stopped();
}

export interface AllInOneOptions extends ApiServerOptions {
  /** Logs to stderr instead of the data directory. */
  readonly verbose: boolean;
}

interface AllInOne {
  readonly apiServer: ApiServer;
  stop(): Promise<void>;
}

/** Starts every part in order and proves that the whole works before saying so. */
async function startAllInOne(deps: ApiServerDeps, options: ApiServerOptions): Promise<AllInOne> {
  const apiServer = await startApiServer(deps, options);
  try {
    const transport = await openTransport(deps, apiServer);
    await step(
      deps,
      "client",
      () => prove(transport),
      (namespaces) => `${namespaces} namespaces through ${apiServer.kubeconfig}`,
    );
    return {
      apiServer,
      async stop() {
        await transport.close();
        await apiServer.stop();
      },
    };
  } catch (error) {
    await apiServer.stop();
    throw error;
  }
}

/** The way every other part, and the user, will take: the file on disk, TLS, a certificate. */
async function openTransport({ clock, log }: ApiServerDeps, { kubeconfig }: ApiServer): Promise<Transport> {
  // The server beside us rewrites the file when a certificate is renewed, which in a year it is.
  const access = await loadChangingAccess({ world: createLocalWorld(), clock, log }, kubeconfig);
  return createHttpTransport(access, { clock, userAgent: `mooring/${productVersion()} (up)` });
}

async function prove(transport: Transport): Promise<number> {
  const ready = await transport.request({ method: "GET", path: "/readyz" });
  const listed = await transport.request({ method: "GET", path: "/api/v1/namespaces" });
  if (ready.status !== 200 || listed.status !== 200) {
    throw new ProcessError(
      "NotWorking",
      `the API server started but answers ${ready.status} to /readyz and ${listed.status} to a list of namespaces; its log says why`,
    );
  }
  return (JSON.parse(listed.body) as { items: unknown[] }).items.length;
}
