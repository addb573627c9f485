import { DEFAULT_OPTIONS } from "../attach-detach/options.ts";
import type { AttachDetachController } from "../attach-detach/controller.ts";
import { DEFAULT_ATTACHER_OPTIONS } from "../attacher/options.ts";
import type { AttachmentReport } from "../attacher/report.ts";
import { abortReason } from "../base/clock.ts";
import { serveRegistration } from "../csi/registration.ts";
import type { ServedMethod } from "../csi/methods.ts";
import { attachUntil } from "../processes/attacher.ts";
import type { ReportingDriver } from "../processes/attachments-page.ts";
import { createControllerProcess } from "../processes/controller.ts";
import { DRIVER_NAME } from "../processes/up/defaults.ts";
import { startCompanions } from "../processes/up/control-plane.ts";
import { createParts, type Parts } from "../processes/up/parts.ts";
import type { FlexHost } from "../volumes/plugins/flex-driver.ts";
import type { Machine } from "./machine.ts";
import { OriginalController, type OriginalControllerOptions } from "./original-controller.ts";
import { SAN_DRIVER } from "./san.ts";
import type { LifeContext } from "./supervisor.ts";

/** The processes of a cluster, each put together by its production composition and given a simulated world. */

export const SAN_SOCKET = "/csi/san.sock";

/** No FlexVolume driver is installed. */
export const NO_FLEX: FlexHost = {
  list: async () => [],
  exec: async (file) => {
    throw Object.assign(new Error(`${file} is not there`), { code: "ENOENT" });
  },
};

/** Twice the times of the flags' defaults: renewals are a quarter of all requests of a cluster at rest. */
const ELECTED = { enabled: true, leaseDurationMs: 30_000, renewDeadlineMs: 20_000, retryPeriodMs: 4_000 };

export interface ControllerMember {
  readonly onProcess: (current: () => AttachDetachController | undefined) => void;
  /** `--detach-policy`: how long a silent node keeps a volume that no pod uses any more. */
  readonly forceAfterMs: number;
}

/** `mooring controller`, one replica. */
export async function runController(
  context: LifeContext,
  { onProcess, forceAfterMs }: ControllerMember,
  signal: AbortSignal,
): Promise<void> {
  const force = { kind: "after", ms: forceAfterMs } as const;
  const drivers = [SAN_DRIVER, DRIVER_NAME];
  const process = createControllerProcess(context, context.cluster, {
    ...DEFAULT_OPTIONS,
    detachPolicies: drivers.map((driver) => ({ match: { kind: "driver", driver } as const, force })),
    ...{ kubeconfig: undefined, qps: undefined, burst: undefined, httpEndpoint: undefined },
    logLevel: "info",
    leaderElection: {
      ...ELECTED,
      resourceName: "mooring-attach-detach-controller",
      resourceNamespace: "kube-system",
    },
    flexVolumePluginDir: "",
    flexHost: NO_FLEX,
  });
  onProcess(process.current);
  await process.run(signal);
}

/** Upstream's attach/detach controller, as a model. */
export async function runOriginalController(
  { cluster, clock, random }: LifeContext,
  options: OriginalControllerOptions,
  signal: AbortSignal,
): Promise<void> {
  await new OriginalController({ client: cluster.client, clock, random }, options).run(signal);
}

export interface DriverSockets {
  readonly machine: Machine;
  /** Of the controller service of each driver. */
  readonly socketPaths: readonly string[];
}

/** What `/debug/attachments` of an attacher says of those that wait. */
export interface AttacherPage {
  readonly time: string;
  readonly attachments: readonly AttachmentReport[];
}

export interface AttacherMember extends DriverSockets {
  /** The page of the present life. */
  readonly onPage: (page: () => AttacherPage) => void;
}

/** `mooring attacher` of all drivers. */
export async function runAttacher(
  context: LifeContext,
  { machine, socketPaths, onPage }: AttacherMember,
  signal: AbortSignal,
): Promise<void> {
  const connect = (path: string) => machine.sockets.connect(path, context.life);
  const onDrivers = (drivers: readonly ReportingDriver[]) =>
    onPage(() => ({
      time: context.clock.wall().toISOString(),
      attachments: drivers.flatMap((driver) => driver.report({ waitingOnly: true }) ?? []),
    }));
  const parts = { ...context, connect, onDrivers, tellEnd: async () => undefined };
  await attachUntil(signal, parts, context.cluster, {
    ...DEFAULT_ATTACHER_OPTIONS,
    csiAddresses: socketPaths,
    ...{ kubeconfig: undefined, qps: undefined, burst: undefined, httpEndpoint: undefined },
    resyncMs: 600_000,
    metricsPath: "/metrics",
    logLevel: "info",
    logFormat: "json",
    logCalls: false,
    answerCharsMax: 0,
    leaderElection: { ...ELECTED, labels: {}, namespace: "kube-system" },
  });
}

/** `mooring companions`: binder, provisioner, resizer, snapshotter, scheduler. */
export async function runCompanions(
  context: LifeContext,
  { machine, socketPaths }: DriverSockets,
  signal: AbortSignal,
): Promise<void> {
  const parts = createParts(context.log);
  const connect = (path: string) => machine.sockets.connect(path, context.life);
  await startCompanions(context, parts, { socketPaths, connect });
  await ended(parts, signal);
}

export interface DriverMember {
  readonly machine: Machine;
  readonly served: readonly ServedMethod[];
  /** Given, it sees to it itself that calls of one volume do not get into each other's way. */
  readonly locks?: boolean;
}

/** A driver's controller service. */
export async function runDriverController(
  { life }: LifeContext,
  { machine, socketPath, served, ...options }: DriverMember & { readonly socketPath: string },
  signal: AbortSignal,
): Promise<void> {
  const socket = machine.sockets.listen(socketPath, served, life, options);
  await aborted(signal);
  socket.close();
}

/** A driver's node service, which registers itself. */
export async function runDriverNode(
  { life }: LifeContext,
  { machine, driver, served, ...options }: DriverMember & { readonly driver: string },
  signal: AbortSignal,
): Promise<void> {
  const endpoint = `${machine.rootDir}/plugins/${driver}/csi.sock`;
  const refused = new AbortController();
  const registration = serveRegistration({ driverName: driver, endpoint }, (outcome) => {
    if (outcome.kind === "refused") refused.abort(new Error(outcome.error));
  });
  const sockets = [
    machine.sockets.listen(endpoint, served, life, options),
    machine.sockets.listen(`${machine.rootDir}/plugins_registry/${driver}-reg.sock`, registration, life),
  ];
  await Promise.race([aborted(signal), aborted(refused.signal)]);
  for (const socket of sockets) socket.close();
}

/** Until the end is asked for or a part has failed; then everything has ended. */
export async function ended(parts: Parts, signal: AbortSignal): Promise<void> {
  await Promise.race([aborted(signal), aborted(parts.failed)]);
  const failed = parts.failed.aborted && !signal.aborted ? abortReason(parts.failed) : undefined;
  await parts.stop();
  if (failed !== undefined) throw failed;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
