import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import { createGrpcChannel } from "../csi/grpc-channel.ts";
import type { Channel } from "../csi/methods.ts";
import type { Client } from "../kube/client/client.ts";
import { createEventRecorder } from "../kube/events/events.ts";
import { toKey } from "../kube/object.ts";
import { createNodeCaches, type NodeCaches } from "../node/caches.ts";
import type { ChildSlots } from "../node/child-slots.ts";
import type { Host } from "../node/host.ts";
import { createVolumeStats } from "../node/answers/volume-stats.ts";
import { createLinuxHost } from "../node/linux-host.ts";
import { labelPluginDirectories, readSelinux } from "../node/linux-selinux.ts";
import { createVolumeManager, type VolumeManager } from "../node/manager.ts";
import { createPaths, type Paths } from "../node/paths.ts";
import { spellRoot } from "../node/root-spelling.ts";
import { createCsiDrivers, type CsiDrivers } from "../node/plugins/csi-drivers.ts";
import { createCsiNodeWriter } from "../node/registration/csi-node-writer.ts";
import { createOwnObjects } from "../node/registration/own-objects.ts";
import { createLinuxSockets } from "../node/registration/linux-sockets.ts";
import { createRegistrar, type Registrar } from "../node/registration/registrar.ts";
import type { SocketWatch } from "../node/registration/sockets.ts";
import type { NodeName } from "../volumes/names.ts";
import type { FlexHost } from "../volumes/plugins/flex-driver.ts";
import { createNodePlugins } from "./node-plugins.ts";
import { runWithParts } from "./run-parts.ts";

/** One node: the volume manager with everything around it, on this machine. */
export interface NodeAgent {
  readonly manager: VolumeManager;
  run(signal: AbortSignal): Promise<void>;
}

export interface NodeAgentWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface NodeAgentOptions {
  readonly client: Client;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly pluginsRegistry: string;
  readonly flexVolumePluginDir: string;
  /** False: attaching is the node's own business. */
  readonly controllerAttaches?: boolean;
  readonly volumeStatsPeriodMs?: number;
  /** How long after it began a call to a driver may be under way, answered or not. */
  readonly callWindowMs?: number;
  /** A CSI driver that lives in the agent's process: a call to it has ended with the process that made it. */
  readonly ownDriver?: string;
  /** Gate CSIVolumeHealth. */
  readonly volumeHealth?: boolean;
  /** Another machine than this one, or this one for several agents of one process. */
  readonly host?: (Host & { readonly slots?: ChildSlots }) | undefined;
  /** To a driver's socket; over gRPC unless told otherwise. */
  readonly connect?: (socketPath: string) => Channel;
  /** The sockets below `pluginsRegistry`; those of this machine unless told otherwise. */
  readonly sockets?: SocketWatch;
  readonly flexHost?: FlexHost | undefined;
  /** Gate SELinuxMount. */
  readonly selinuxMount?: boolean;
}

/** Upstream's: whoever filters events by their source keeps finding them. */
const EVENT_SOURCE = "kubelet";

export async function createNodeAgent(world: NodeAgentWorld, options: NodeAgentOptions): Promise<NodeAgent> {
  const { client, nodeName, rootDir, pluginsRegistry, flexVolumePluginDir, volumeHealth = false } = options;
  const { volumeStatsPeriodMs: periodMs = 60_000 } = options;
  const { clock, random, log, metrics } = world;
  const linux = createLinuxHost({ clock });
  const paths = createPaths(rootDir);
  const host = await prepareRoot(options.host ?? linux, paths, pluginsRegistry);
  const selinux = await readSelinux({ host, log });
  await labelPluginDirectories({ host, log, selinux }, { plugins: paths.plugins, registry: pluginsRegistry });
  const caches = createNodeCaches(
    { client, clock, random: random.fork("caches"), log, metrics },
    { nodeName },
  );
  const source = { component: EVENT_SOURCE, host: nodeName || hostname() };
  const events = createEventRecorder({ ...world, client, random: random.fork("events") }, source);
  const {
    connect = (socketPath: string) => createGrpcChannel({ clock, log }, { socketPath }),
    sockets = createLinuxSockets({ clock, log }, { folder: pluginsRegistry }),
  } = options;
  const drivers = createCsiDrivers({ clock, connect, metrics });
  const registrar = createNodeRegistrar({
    ...world,
    ...{ client, caches, drivers, connect, sockets, nodeName },
    manager: () => manager,
  });
  const plugins = createNodePlugins(
    { ...world, client, caches, events, host, paths, drivers, slots: (options.host ?? linux).slots },
    {
      nodeName,
      flexVolumePluginDir,
      flexHost: options.flexHost,
      volumeHealth,
      refreshAllocatable: (driver, signal) => registrar.refreshAllocatable(driver, signal),
      onChange: () => {
        for (const { metadata } of caches.pods.objects()) manager.podStateChanged(metadata.uid ?? "");
      },
    },
  );
  const manager: VolumeManager = createVolumeManager(
    {
      ...world,
      client,
      caches,
      events,
      host,
      paths,
      plugins: plugins.table,
      nodeName: nodeName as NodeName,
    },
    { ...options, selinux, tokenDueAtMs: (podUid) => plugins.tokenDueAtMs(podUid) },
  );
  const stats = createVolumeStats(
    {
      ...world,
      random: random.fork("stats"),
      events,
      queries: manager,
      plugins: plugins.table,
      pods: () => caches.pods.objects(),
    },
    { periodMs },
  );
  drivers.onChange((name) => manager.changed({ kind: "driver", name }));
  caches.drivers.addHandler(({ key }) => registrar.driverObjectChanged(key));
  return {
    manager,
    async run(signal) {
      try {
        await plugins.prepare(signal);
        await runWithParts([caches, events, registrar, plugins, stats], (stop) => manager.run(stop), signal);
      } finally {
        drivers.close();
        linux.close();
      }
    },
  };
}

/** Makes what is missing; answers the machine as it is seen from this root directory. */
async function prepareRoot(host: Host, paths: Paths, pluginsRegistry: string): Promise<Host> {
  for (const path of [paths.root, paths.pods, paths.plugins, pluginsRegistry])
    await host.files.makeDirectories(path, 0o750);
  // Drivers in containers mount below it, and their mounts have to arrive here.
  await host.mounts.makeShared(paths.root);
  return spellRoot(host, paths.root);
}

function createNodeRegistrar(
  deps: NodeAgentWorld & {
    readonly client: Client;
    readonly caches: NodeCaches;
    readonly drivers: CsiDrivers;
    readonly connect: (socketPath: string) => Channel;
    readonly sockets: SocketWatch;
    readonly nodeName: string;
    readonly manager: () => VolumeManager;
  },
): Registrar {
  const { clock, log, metrics, random, client, caches, drivers, connect, sockets, nodeName, manager } = deps;
  const own = createOwnObjects(
    { clock, log, metrics, client, random: random.fork("own-objects"), node: caches.node },
    { nodeName },
  );
  const registrar = createRegistrar({
    clock,
    random: random.fork("projection"),
    seen: own,
    log,
    metrics,
    sockets,
    connect,
    drivers,
    csiNode: createCsiNodeWriter({ client, clock, random: random.fork("csi-node"), log, nodeName }),
    allocatablePeriodMsOf: (driver) => {
      const spec = caches.drivers.get(toKey({ name: driver }))?.spec as
        { nodeAllocatableUpdatePeriodSeconds?: number } | undefined;
      const seconds = spec?.nodeAllocatableUpdatePeriodSeconds;
      return seconds === undefined ? undefined : seconds * 1_000;
    },
    driverInUse: (driver) => manager().isDriverInUse(driver),
  });
  return {
    ...registrar,
    async run(signal) {
      await Promise.all([own.run(signal), registrar.run(signal)]);
    },
  };
}
