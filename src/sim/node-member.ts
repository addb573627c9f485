import type { Pod } from "../kube/api/pod.ts";
import { pods } from "../kube/api/pod.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Host } from "../node/host.ts";
import type { VolumeManager } from "../node/manager.ts";
import { createNodeHeartbeat } from "../companions/pod-starter/node-heartbeat.ts";
import { createPodStarter } from "../companions/pod-starter/pod-starter.ts";
import { createNodeAgent, type NodeAgent } from "../processes/node-agent.ts";
import { createParts } from "../processes/up/parts.ts";
import { startEvents } from "../processes/up/member.ts";
import { whenTrue } from "../processes/up/until.ts";
import type { Containers } from "./containers.ts";
import { mapCalls, NODE_VIEW } from "./host-calls.ts";
import { ended, NO_FLEX } from "./members.ts";
import type { Machine } from "./machine.ts";
import type { LifeContext } from "./supervisor.ts";

export interface NodeMember {
  readonly machine: Machine;
  readonly containers: Containers;
  /** The agent of the present life. */
  readonly onAgent: (agent: NodeAgent) => void;
}

/** As `kubelet --sync-frequency`: how soon a runtime is asked about pods whose end no watch has told. */
const LOOK_MS = 20_000;

/** `mooring node` with what a kubelet does besides, as `mooring up` puts it together. */
export async function runNode(
  context: LifeContext,
  { machine, containers, onAgent }: NodeMember,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, cluster, life } = context;
  const { client } = cluster;
  const { name: nodeName, bootId } = machine;
  const pluginsRegistry = `${machine.rootDir}/plugins_registry`;
  const parts = createParts(log);
  let manager: VolumeManager | undefined = undefined;
  const volumesInUse = () => (manager?.statesHaveBeenSynced() ? manager.getVolumesInUse() : undefined);
  const heartbeat = createNodeHeartbeat({ client, clock, log, volumesInUse }, { nodeName, ...FACTS, bootId });
  parts.run("heartbeat", (stop) => heartbeat.run(stop));
  const agent = await createNodeAgent(context, {
    ...{ client, nodeName, rootDir: machine.rootDir, pluginsRegistry, flexVolumePluginDir: "" },
    host: boundHost(context, machine),
    connect: (socketPath) => machine.sockets.connect(socketPath, life),
    sockets: machine.sockets.watch(pluginsRegistry, life),
    flexHost: NO_FLEX,
  });
  manager = agent.manager;
  onAgent(agent);
  parts.run("agent", (stop) => agent.run(stop));
  await whenTrue(context, () => agent.manager.statesHaveBeenSynced(), parts.failed);
  const events = startEvents(context, parts, { component: "kubelet", host: nodeName });
  const volumes = {
    waitForAttachAndMount: async (pod: Pod, stop: AbortSignal) => {
      await agent.manager.waitForAttachAndMount(pod, stop);
      containers.start(pod);
    },
    waitForUnmount: async (pod: Pod, stop: AbortSignal) => {
      containers.end(pod.metadata.uid ?? "");
      await agent.manager.waitForUnmount(pod, stop);
    },
    statesHaveBeenSynced: () => agent.manager.statesHaveBeenSynced(),
  };
  const starter = createPodStarter({ ...context, client, events }, { nodeName, volumes });
  parts.run("pod starter", (stop) => starter.run(stop));
  parts.run("runtime", (stop) => endOrphans(context, containers, stop));
  await ended(parts, signal);
}

/** Containers whose pods are gone, also those that went while nobody looked, are ended as a kubelet does. */
async function endOrphans(
  { clock, cluster }: LifeContext,
  containers: Containers,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    for (const { podUid, pod: name } of [...containers.running.values()]) {
      try {
        const { metadata } = await cluster.client.get(pods, { namespace: "default", name }, { signal });
        if (metadata.uid !== podUid || metadata.deletionTimestamp !== undefined) containers.end(podUid);
      } catch (error) {
        if (isKubeError(error, "NotFound")) containers.end(podUid);
      }
    }
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
}

/** A write with its fsync takes a few milliseconds, a mount about one: a process can be killed after each. */
const CHANGE_MS_MAX = 10;
/** What was read is that old when the process hears of it: others change the same machine meanwhile. */
const READ_MS_MAX = 1;

/** The machine as this process sees it: calls take their time, and with its death they end. */
function boundHost({ life, random }: LifeContext, { host, kernelFaults, clock }: Machine): Host {
  const times = random.fork("host");
  const timed = mapCalls(kernelFaults.host(host), NODE_VIEW, async ({ name }, work) => {
    const result = await work();
    await clock.sleep(times.float() * (NODE_VIEW.changes.has(name) ? CHANGE_MS_MAX : READ_MS_MAX));
    return result;
  });
  const { files, mounts, devices, programs, processes } = timed;
  return {
    files: life.bind(files),
    mounts: life.bind(mounts),
    devices: life.bind(devices),
    programs: life.bind(programs),
    processes: life.bind(processes),
  };
}

const FACTS = {
  os: "linux",
  arch: "amd64",
  cpus: 4,
  memoryBytes: 8 * 2 ** 30,
  kubeletVersion: "v1.37.0",
};
