import { hostname } from "node:os";
import { DEFAULT_OPTIONS } from "../../attach-detach/options.ts";
import { DEFAULT_ATTACHER_OPTIONS } from "../../attacher/options.ts";
import { createScheduler } from "../../companions/scheduler/scheduler.ts";
import { createStorageCompanions } from "../../companions/storage.ts";
import { createGrpcChannel } from "../../csi/grpc-channel.ts";
import type { Channel } from "../../csi/methods.ts";
import type { Fault } from "../../driver/faults.ts";
import type { Host } from "../../driver/host.ts";
import { attachUntil } from "../attacher.ts";
import { createControllerProcess, startEndpoint } from "../controller.ts";
import { startDriver } from "../driver.ts";
import { DRIVER_NAME } from "./defaults.ts";
import { ANY_PORT } from "./endpoints.ts";
import type { Layout } from "./layout.ts";
import { startEvents, type Member } from "./member.ts";
import type { Parts } from "./parts.ts";
import { whenTrue } from "./until.ts";

/** One process holds the data directory, so nobody has to be elected. */
const NOT_ELECTED = {
  ...{ enabled: false, leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 },
  ...{ resourceName: "mooring-attach-detach-controller", resourceNamespace: "kube-system" },
};

export interface DriverPlace {
  readonly host: Host;
  readonly layout: Layout;
  readonly nodes: readonly string[];
  readonly faults: readonly Fault[];
}

/** The driver's controller service: makes, attaches, grows and copies the volumes of the pool. */
export async function startStorage(
  { clock, random, log, metrics }: Member,
  parts: Parts,
  { host, layout, nodes, faults }: DriverPlace,
): Promise<void> {
  const service = await startDriver(
    { clock, random, log, metrics, host },
    {
      name: DRIVER_NAME,
      nodeId: nodes[0] ?? "",
      nodes,
      serves: "controller",
      stateDir: layout.pool,
      socketPath: layout.controllerSocket,
      kubeletRegistrationPath: undefined,
      pluginRegistrationPath: "",
      requireSecretFile: undefined,
      httpEndpoint: undefined,
      logLevel: "info",
      faults,
    },
  );
  parts.atEnd("storage", () => service.stop());
}

/** Resolves when it leads, which it does as soon as its caches are complete; with where it answers. */
export async function startController(
  member: Member,
  parts: Parts,
  { flexVolumePluginDir }: { readonly flexVolumePluginDir: string },
): Promise<string> {
  const controller = createControllerProcess(member, member.cluster, {
    ...DEFAULT_OPTIONS,
    ...{ kubeconfig: undefined, qps: undefined, burst: undefined, httpEndpoint: undefined },
    logLevel: "info",
    leaderElection: NOT_ELECTED,
    flexVolumePluginDir,
  });
  const endpoint = await startEndpoint(member, controller, { httpEndpoint: ANY_PORT });
  parts.atEnd("controller's endpoint", async () => endpoint?.stop());
  parts.run("controller", (signal) => controller.run(signal));
  await controller.whenSynced(parts.failed);
  return endpoint?.url ?? "";
}

/** Resolves when it has met its driver and knows the cluster; with where it answers. */
export async function startAttacher(
  member: Member,
  parts: Parts,
  { layout }: Pick<DriverPlace, "layout">,
): Promise<string> {
  const { enabled, leaseDurationMs, renewDeadlineMs, retryPeriodMs } = NOT_ELECTED;
  return new Promise<string>((resolve, reject) => {
    parts.failed.addEventListener("abort", () => reject(parts.failed.reason as Error), { once: true });
    const options = {
      ...DEFAULT_ATTACHER_OPTIONS,
      csiAddresses: [layout.controllerSocket],
      ...{ kubeconfig: undefined, qps: undefined, burst: undefined, httpEndpoint: ANY_PORT },
      resyncMs: 600_000,
      metricsPath: "/metrics",
      logLevel: "info",
      logFormat: "json",
      logCalls: false,
      answerCharsMax: 0,
      leaderElection: {
        ...{ enabled, leaseDurationMs, renewDeadlineMs, retryPeriodMs, labels: {} },
        namespace: "kube-system",
      },
      onReady: (url = "") => resolve(url),
    } as const;
    parts.run("attacher", (signal) => attachUntil(signal, member, member.cluster, options));
  });
}

/** What a cluster would otherwise supply: claims get volumes, pods get nodes. */
export async function startCompanions(
  member: Member,
  parts: Parts,
  {
    socketPaths,
    connect = (path) => createGrpcChannel(member, { socketPath: path }),
  }: { readonly socketPaths: readonly string[]; readonly connect?: (socketPath: string) => Channel },
): Promise<void> {
  const { client } = member.cluster;
  const channels = socketPaths.map((path) => connect(path));
  parts.atEnd("companions' channels", async () => {
    for (const channel of channels) channel.close();
  });
  const host = member.hostname ?? hostname();
  const storageEvents = startEvents(member, parts, { component: "persistentvolume-controller", host });
  const storage = createStorageCompanions({ ...member, client, events: storageEvents }, { channels });
  parts.run("storage companions", (signal) => storage.run(signal));
  const podEvents = startEvents(member, parts, { component: "default-scheduler", host });
  const scheduler = createScheduler({ ...member, client, events: podEvents });
  parts.run("scheduler", (signal) => scheduler.run(signal));
  await whenTrue(member, () => storage.hasSynced() && scheduler.hasSynced(), parts.failed);
}
