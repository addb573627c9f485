import { hostname } from "node:os";
import { join } from "node:path";
import { abortReason, type Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import type { Random } from "../base/random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { createSystemRandom } from "../base/system-random.ts";
import type { AuthorizationMode } from "../apiserver/auth/authorizer.ts";
import { runRotation } from "../apiserver/auth/rotation.ts";
import type { ControllerName } from "../apiserver/controllers/selection.ts";
import { startServer, type Server, type ServerTls } from "../apiserver/server.ts";
import { systemCode } from "../kube/config/world.ts";
import { renderKubeconfig } from "../kube/config/render.ts";
import { openDataDirectory, type DataDirectory } from "./data-directory.ts";
import { explainStart } from "./disk-problems.ts";
import { openStore, startEngine, type Engine, type StoreOptions } from "./engine.ts";
import { ProcessError } from "./errors.ts";
import { keepHeapSmall } from "./heap.ts";
import { lockDirectory } from "./lock.ts";
import { ensurePki, type Pki } from "./pki.ts";
import { step, type Report, type StepDeps } from "./progress.ts";
import { aborted, shutdownSignal } from "./shutdown.ts";

export interface ApiServerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly report: Report;
  readonly slow?: StepDeps["slow"];
}

export interface ApiServerOptions {
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  readonly authorizationMode: AuthorizationMode;
  /** Lines of `token,user,uid,"group1,group2"`. */
  readonly tokenAuthFile?: string;
  readonly store?: StoreOptions;
  /** The built-in controllers to run; all unless told otherwise. */
  readonly controllers?: ReadonlySet<ControllerName>;
}

export interface ApiServer {
  /** `https://127.0.0.1:6443`, as a client on this machine reaches it. */
  readonly url: string;
  readonly kubeconfig: string;
  /** Ends watches, lets requests finish, gives the data directory back. */
  stop(): Promise<void>;
}

/** The embedded API server as a process: data directory, certificates, store, socket, kubeconfig. */
export async function startApiServer(deps: ApiServerDeps, options: ApiServerOptions): Promise<ApiServer> {
  const { lock, directory } = await step(
    deps,
    "data directory",
    () => claimDirectory(options.dataDir),
    ({ directory }) => directory.path,
  );
  try {
    const pki = await step(
      deps,
      "certificates",
      () => ensurePki({ clock: deps.clock, directory }, { host: options.host, hostname: hostname() }),
      ({ made }) => (made.length === 0 ? "kept from before" : `made ${made.join(", ")}`),
    );
    const store = await step(
      deps,
      "store",
      () => openStore(deps, directory, options.store),
      ({ revision, health }) => `at revision ${revision}${health.kind === "full" ? `; ${health.why}` : ""}`,
    );
    const engine = await startEngine(deps, store, { ...options, directory, rootCa: pki.ca }).catch(
      async (error: unknown) => {
        await store.close();
        throw error;
      },
    );
    const server = await step(
      deps,
      "apiserver",
      () => serve(deps, options, { pki, engine }),
      ({ address }) => urlOf(address),
    );
    const url = urlOf(server.address);
    engine.announce(new URL(url).host);
    const kubeconfig = await writeKubeconfig(directory, url, pki);
    const rotation = keepCertificates(deps, options, { directory, pki, server, engine, url });
    const parts = [rotation, server, engine];
    return { url, kubeconfig, stop: () => stopAll(parts).finally(() => lock.release()) };
  } catch (error) {
    await lock.release();
    throw await explainStart(directory.path, error);
  }
}

/** `mooring apiserver`: serves until the operating system asks it to end. Logs to stderr. */
export async function runApiServer(options: ApiServerOptions): Promise<void> {
  keepHeapSmall();
  const shutdown = shutdownSignal();
  const log = createPinoLogger({ fields: { component: "apiserver" } });
  const report: Report = ({ component, detail, tookMs }) =>
    log.info("ready", { part: component, detail, tookMs: Math.round(tookMs) });
  const deps = { clock: createSystemClock(), random: createSystemRandom(), log, report };
  const server = await startApiServer(deps, options);
  log.info("serving", { url: server.url, kubeconfigFile: server.kubeconfig });
  await aborted(shutdown);
  log.info("stopping", { reason: abortReason(shutdown).message });
  await stopInTime({ ...deps, exit: (code) => process.exit(code) }, server);
  log.info("stopped");
}

/**
 * Requests get 5 s of it, and a commit takes milliseconds; the rest is for a disk that answers late. Whatever was
 * answered with success is on disk already, so that ending without the last commit loses nothing.
 */
const STOP_MS_MAX = 20_000;

/** Stops, or ends the process with 1: whoever asked it to end must not have to kill it. */
export async function stopInTime(
  { clock, log, exit }: Pick<ApiServerDeps, "clock" | "log"> & { exit: (code: number) => void },
  part: Stoppable,
): Promise<void> {
  const watchdog = clock.after(STOP_MS_MAX, () => {
    log.error("still not stopped; ending now, with nothing lost that was answered", { afterMs: STOP_MS_MAX });
    exit(1);
  });
  try {
    await part.stop();
  } finally {
    watchdog.cancel();
  }
}

async function claimDirectory(path: string) {
  const directory = await openDataDirectory(path);
  return { directory, lock: await lockDirectory(directory.path) };
}

async function serve(
  { clock, log }: ApiServerDeps,
  { host, port }: ApiServerOptions,
  { pki, engine }: { pki: Pki; engine: Engine },
): Promise<Server> {
  try {
    return await startServer({ handler: engine.handler, clock, log }, { host, port, tls: toTls(pki) });
  } catch (error) {
    await engine.stop();
    throw cannotListen(host, port, error);
  }
}

/** Clients of every authority that has not ended are welcome, whichever of them signs now. */
function toTls({ server, authorities }: Pki): ServerTls {
  return { ...server, clientCa: authorities.map(({ certificate }) => certificate) };
}

/** Renews certificates in time, and hands them to all who use them: the socket, the kubeconfig, every namespace. */
function keepCertificates(
  { clock, log }: ApiServerDeps,
  { host }: ApiServerOptions,
  { directory, pki, server, engine, url }: Serving,
): Stoppable {
  const stopping = new AbortController();
  const renew = () => ensurePki({ clock, directory }, { host, hostname: hostname() });
  const install = async (renewed: Pki) => {
    server.useCertificate(toTls(renewed));
    engine.useRootCa(renewed.ca);
    await writeKubeconfig(directory, url, renewed);
  };
  const running = runRotation({ clock, log, renew, install }, pki, stopping.signal);
  return {
    async stop() {
      stopping.abort(new Error("the API server is stopping"));
      await running;
    },
  };
}

interface Serving {
  readonly directory: DataDirectory;
  readonly pki: Pki;
  readonly server: Server;
  readonly engine: Engine;
  readonly url: string;
}

interface Stoppable {
  stop(): Promise<void>;
}

/** In order: each may still need those after it. */
async function stopAll(parts: readonly Stoppable[]): Promise<void> {
  for (const part of parts) await part.stop();
}

async function writeKubeconfig(directory: DataDirectory, url: string, pki: Pki): Promise<string> {
  const text = renderKubeconfig({
    name: "mooring",
    server: url,
    ca: pki.ca,
    user: "admin",
    clientCertificate: pki.admin,
  });
  await directory.rewrite("admin.kubeconfig", text);
  return join(directory.path, "admin.kubeconfig");
}

/** Addresses that mean "everywhere" are no place to connect to; this machine is. */
function urlOf({ host, port }: { host: string; port: number }): string {
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `https://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}

function cannotListen(host: string, port: number, error: unknown): unknown {
  const address = `${host}:${port}`;
  const why = LISTEN_PROBLEMS[systemCode(error) ?? ""];
  if (why === undefined) return error;
  return new ProcessError(
    "BadAddress",
    `cannot listen on ${address}: ${why}; choose another with --listen HOST:PORT`,
    {
      cause: error,
    },
  );
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES: "ports below 1024 need root",
  ENOTFOUND: "that name has no address",
};
