import { arch, availableParallelism, platform, totalmem } from "node:os";
import { createNodeHeartbeat } from "../../companions/pod-starter/node-heartbeat.ts";
import { createPodStarter } from "../../companions/pod-starter/pod-starter.ts";
import { createCsiServer } from "../../csi/server.ts";
import { withFaults, type Fault } from "../../driver/faults.ts";
import { createLinuxHost } from "../../driver/linux-host.ts";
import { csiNodes } from "../../kube/api/csi-node.ts";
import { createMemoryHost, type MemoryHost } from "../../node/memory/host.ts";
import type { LinuxHost as NodeMachine } from "../../node/linux-host.ts";
import type { VolumeManager } from "../../node/manager.ts";
import { createRegistrationServer } from "../driver-registration.ts";
import { startDriver } from "../driver.ts";
import { refuseKubelet } from "../kubelet-check.ts";
import { createNodeAgent, type NodeAgent } from "../node-agent.ts";
import { startEndpoint, syncedCheck } from "../node.ts";
import { productVersion } from "../product.ts";
import { DRIVER_NAME } from "./defaults.ts";
import { ANY_PORT } from "./endpoints.ts";
import type { Layout } from "./layout.ts";
import { startEvents, type Member } from "./member.ts";
import type { Parts } from "./parts.ts";
import { simulatedDriver } from "./simulated-driver.ts";
import { untilObject, whenTrue } from "./until.ts";

export interface NodeOptions {
  readonly name: string;
  readonly layout: Layout;
  readonly flexVolumePluginDir: string;
  readonly faults: readonly Fault[];
  /** This machine, shared by all nodes, so that its bound on processes holds for all of them. Else one in memory. */
  readonly machine: NodeMachine | undefined;
}

/** Upstream's: whoever filters events by their source keeps finding them. */
const EVENT_SOURCE = "kubelet";

/**
 * A node of this machine: its root directory, its driver's node service, its volume manager, and what a kubelet does
 * besides. Resolves when pods can be given to it, with where its volume manager answers.
 */
export async function startNode(
  member: Member,
  parts: Parts,
  { name, layout, flexVolumePluginDir, faults, machine: real }: NodeOptions,
): Promise<string> {
  const { cluster, clock, log } = member;
  const { client } = cluster;
  const { rootDir, pluginsRegistry } = layout.node(name);
  if (real) await refuseKubelet({ rootDir, allowOnMachine: true });
  const machine = real === undefined ? createMemoryHost({ clock }) : undefined;
  let manager: VolumeManager | undefined = undefined;
  const volumesInUse = () => (manager?.statesHaveBeenSynced() ? manager.getVolumesInUse() : undefined);
  const heartbeat = createNodeHeartbeat({ client, clock, log, volumesInUse }, factsOf(name));
  parts.run(`${name}'s heartbeat`, (signal) => heartbeat.run(signal));
  const place = { name, layout, faults };
  if (machine) await startSimulatedDriver(member, parts, { ...place, machine });
  else await startNodeDriver(member, parts, place);
  const agent = await createNodeAgent(member, {
    ...{ client, nodeName: name, rootDir, pluginsRegistry, flexVolumePluginDir, host: machine ?? real },
    ownDriver: DRIVER_NAME,
  });
  manager = agent.manager;
  const endpoint = await startNodeEndpoint(member, parts, agent);
  parts.run(name, (signal) => agent.run(signal));
  const hasDriver = untilObject(
    { ...member, client },
    {
      resource: csiNodes,
      name,
      is: ({ spec }) => spec.drivers.some((driver) => driver.name === DRIVER_NAME),
    },
    parts.failed,
  );
  await Promise.all([hasDriver, whenTrue(member, () => agent.manager.statesHaveBeenSynced(), parts.failed)]);
  // After that: until it has taken stock, an agent takes a pod for unmounted that is not.
  const events = startEvents(member, parts, { component: EVENT_SOURCE, host: name });
  const starter = createPodStarter({ ...member, client, events }, { nodeName: name, volumes: agent.manager });
  parts.run(`${name}'s pod starter`, (signal) => starter.run(signal));
  return endpoint;
}

async function startNodeEndpoint(member: Member, parts: Parts, agent: NodeAgent): Promise<string> {
  const checks = { live: [], ready: [syncedCheck(agent)] };
  const endpoint = await startEndpoint(member, agent, { checks, options: { httpEndpoint: ANY_PORT } });
  parts.atEnd("a node's endpoint", async () => endpoint?.stop());
  return endpoint?.url ?? "";
}

function factsOf(nodeName: string) {
  return {
    nodeName,
    os: platform(),
    arch: arch() === "x64" ? "amd64" : arch(),
    cpus: availableParallelism(),
    memoryBytes: totalmem(),
    kubeletVersion: `v${productVersion()}-mooring`,
  };
}

type DriverPlace = Pick<NodeOptions, "name" | "layout" | "faults">;

async function startNodeDriver(
  { clock, random, log, metrics }: Member,
  parts: Parts,
  { name, layout, faults }: DriverPlace,
): Promise<void> {
  const { driverSocket, pluginsRegistry } = layout.node(name);
  const service = await startDriver(
    { clock, random: random.fork("driver"), log, metrics, host: createLinuxHost({ clock }) },
    {
      name: DRIVER_NAME,
      nodeId: name,
      serves: "node",
      stateDir: layout.pool,
      socketPath: driverSocket,
      kubeletRegistrationPath: driverSocket,
      pluginRegistrationPath: pluginsRegistry,
      requireSecretFile: undefined,
      httpEndpoint: undefined,
      logLevel: "info",
      faults,
    },
  );
  parts.atEnd(`${name}'s driver`, () => service.stop());
}

/** On the same sockets as the real one: registration and every call take the same way. */
async function startSimulatedDriver(
  { clock, random, log }: Member,
  parts: Parts,
  { name, layout, faults, machine }: DriverPlace & { readonly machine: MemoryHost },
): Promise<void> {
  const { driverSocket: socketPath, pluginsRegistry: folder } = layout.node(name);
  const methods = simulatedDriver({
    host: machine,
    driverName: DRIVER_NAME,
    nodeId: name,
    version: productVersion(),
  });
  const served = withFaults({ clock, random, log }, methods, faults);
  const server = createCsiServer({ clock, log }, { socketPath, served });
  const announced = { driverName: DRIVER_NAME, kubeletPath: socketPath, folder };
  const registration = createRegistrationServer({ clock, log }, announced, (error) =>
    log.error("the registration was refused", { error }),
  );
  for (const one of [server, registration]) {
    await one.start();
    parts.atEnd(`${name}'s simulated driver`, async () => {
      await one.stop({ graceMs: 1_000 });
    });
  }
}
