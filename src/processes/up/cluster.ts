import { dirname, join } from "node:path";
import { abortReason } from "../../base/clock.ts";
import { createLinuxHost } from "../../driver/linux-host.ts";
import { createLinuxHost as createNodeMachine } from "../../node/linux-host.ts";
import type { Fault } from "../../driver/faults.ts";
import type { Host } from "../../driver/host.ts";
import { loadChangingAccess } from "../../kube/config/changing.ts";
import type { Client } from "../../kube/client/client.ts";
import { namespaces } from "../../kube/api/namespace.ts";
import { startApiServer, type ApiServer, type ApiServerDeps, type ApiServerOptions } from "../apiserver.ts";
import { makeDirectory } from "../data-directory.ts";
import { explainStart } from "../disk-problems.ts";
import { createLocalWorld } from "../local-world.ts";
import { mountFacts } from "../mount-rights.ts";
import { step } from "../progress.ts";
import { startAttacher, startCompanions, startController, startStorage } from "./control-plane.ts";
import { DRIVER_NAME, ensureDefaults } from "./defaults.ts";
import { removeEndpoints, writeEndpoints, type Endpoints } from "./endpoints.ts";
import { layoutOf, nodeNames, type Layout } from "./layout.ts";
import { chooseMachine, withoutMounts, type Machine, type NodeMode } from "./machine.ts";
import { openMember, type Member, type MemberDeps } from "./member.ts";
import { startNode } from "./node.ts";
import { createParts, type Parts } from "./parts.ts";
import { powerOff } from "./power-off.ts";
import { closeSocketFolders, openSocketFolder } from "./socket-folder.ts";

export interface ClusterOptions extends ApiServerOptions {
  readonly nodes: number;
  readonly nodeMode: NodeMode;
  readonly flexVolumePluginDir: string | undefined;
  readonly faults: readonly Fault[];
}

/** A whole cluster in this process. */
export interface Cluster {
  readonly apiServer: ApiServer;
  readonly client: Client;
  /** Where its parts say what they wait for. */
  readonly endpoints: Endpoints;
  /** Aborts when a part failed: what is left would only look like a cluster. */
  readonly failed: AbortSignal;
  /** Everything ends and nothing stays mounted. Objects, volumes and their data are kept. */
  stop(): Promise<void>;
}

/**
 * Starts every part, each as soon as what it needs is there, and answers when all of them work. Rejects once the signal
 * aborts, whatever is under way, after everything that was started has ended.
 */
export async function startCluster(
  deps: ApiServerDeps,
  options: ClusterOptions,
  signal: AbortSignal,
): Promise<Cluster> {
  const apiServer = await startApiServer(deps, options);
  const calledOff = new AbortController();
  const callOff = () => calledOff.abort(abortReason(signal));
  const parts = createParts(deps.log, calledOff.signal);
  const stop = () => parts.stop().finally(() => apiServer.stop());
  try {
    signal.throwIfAborted();
    signal.addEventListener("abort", callOff, { once: true });
    // It is told to end and waited for, not left to go on beside the end: it would make again what that removes.
    return await startMembers(deps, { parts, apiServer, stop }, options);
  } catch (error) {
    await stop();
    throw await explainStart(dirname(apiServer.kubeconfig), error);
  } finally {
    // From now on the end is for whoever runs it.
    signal.removeEventListener("abort", callOff);
  }
}

async function startMembers(
  deps: ApiServerDeps,
  { parts, apiServer, stop }: { parts: Parts; apiServer: ApiServer; stop: () => Promise<void> },
  options: ClusterOptions,
): Promise<Cluster> {
  // The server beside us rewrites the file when a certificate is renewed, which in a year it is.
  const access = await loadChangingAccess({ ...deps, world: createLocalWorld() }, apiServer.kubeconfig);
  const memberDeps = { ...deps, parts, access };
  const me = await openMember(memberDeps, "up");
  await step(
    deps,
    "client",
    () => me.cluster.client.list(namespaces, { signal: parts.failed }),
    ({ items }) => `${items.length} namespaces through ${apiServer.kubeconfig}`,
  );
  const dataDir = dirname(apiServer.kubeconfig);
  await removeEndpoints(dataDir);
  const started = await startParts(memberDeps, me, { ...options, dataDir });
  const endpoints = { server: apiServer.url, ...started };
  await writeEndpoints(dataDir, endpoints).catch((error: unknown) =>
    // `why` reads objects alone then; a cluster on a full disk is worth more than that.
    deps.log.warn("where the parts answer could not be written down; why and get say less", { error }),
  );
  parts.atEnd("endpoints", () => removeEndpoints(dataDir));
  return { apiServer, client: me.cluster.client, endpoints, failed: parts.failed, stop };
}

type Deps = MemberDeps & Pick<ApiServerDeps, "report" | "slow">;

async function startParts(
  deps: Deps,
  me: Member,
  options: ClusterOptions,
): Promise<Omit<Endpoints, "server">> {
  const { parts } = deps;
  const { dataDir, faults, flexVolumePluginDir = join(dataDir, "flexvolume") } = options;
  const nodes = nodeNames(options.nodes);
  const layout = layoutOf(dataDir, { nodes, driverName: DRIVER_NAME });
  const linux = createLinuxHost(deps);
  const machine = machineOf(options.nodeMode, linux);
  const host = machine.real ? linux : withoutMounts(linux);
  await prepare(layout, { nodes, dataDir });
  const folders = [...nodes.map((name) => layout.node(name).pluginsRegistry), layout.sockets];
  parts.atEnd("sockets", () => closeSocketFolders(folders));
  if (machine.real) atEndPowerOff(deps, linux, { nodesDir: join(dataDir, "nodes"), stateDir: layout.pool });
  const nodeMachine = machine.real ? createNodeMachine(deps) : undefined;
  parts.atEnd("processes of the nodes", async () => nodeMachine?.close());
  const place = { host, layout, nodes, faults };
  const report = async <T>(component: string, detail: string, start: (member: Member) => Promise<T>) => {
    parts.failed.throwIfAborted();
    const member = await openMember(deps, component);
    return step(
      deps,
      component,
      () => start(member),
      () => detail,
    );
  };
  await step(
    deps,
    "defaults",
    () => ensureDefaults(me.cluster.client),
    (made) => `${made} objects made`,
  );
  await report("storage", `pool ${layout.pool}`, (member) => startStorage(member, parts, place));
  const [controller = "", attacher = "", , ...agents] = await allOrNone(parts, [
    report("controller", "attaches and detaches", (member) =>
      startController(member, parts, { flexVolumePluginDir }),
    ),
    report("attacher", DRIVER_NAME, (member) => startAttacher(member, parts, place)),
    report("companions", "binder, provisioner, scheduler", (member) =>
      startCompanions(member, parts, { socketPaths: [layout.controllerSocket] }).then(() => ""),
    ),
    ...nodes.map((name) =>
      report(name, machine.real ? layout.node(name).rootDir : `simulated: ${machine.why}`, (member) =>
        startNode(member, parts, { name, layout, flexVolumePluginDir, faults, machine: nodeMachine }),
      ),
    ),
  ]);
  return {
    controller,
    attacher,
    nodes: Object.fromEntries(nodes.map((name, index) => [name, agents[index] ?? ""])),
  };
}

/** All of them; a start that is called off waits for each to have ended, so that none makes what the end has removed. */
async function allOrNone<T>({ failed }: Parts, starting: readonly Promise<T>[]): Promise<readonly T[]> {
  try {
    return await Promise.all(starting);
  } catch (error) {
    if (failed.aborted) await Promise.allSettled(starting);
    throw error;
  }
}

function machineOf(mode: NodeMode, { filesystems }: Host): Machine {
  return chooseMachine(mode, { ...mountFacts(), missingTool: filesystems.missingTool() });
}

/** What an earlier life left mounted is taken over by the nodes. */
async function prepare(
  layout: Layout,
  { nodes, dataDir }: { readonly nodes: readonly string[]; readonly dataDir: string },
): Promise<void> {
  await openSocketFolder(layout.sockets);
  for (const name of nodes) await openSocketFolder(layout.node(name).pluginsRegistry);
  for (const directory of [layout.pool, join(dataDir, "nodes")]) await makeDirectory(directory);
}

function atEndPowerOff(
  { parts, log }: Deps,
  host: Host,
  place: { readonly nodesDir: string; readonly stateDir: string },
): void {
  parts.atEnd("mounts", async () => {
    await powerOff({ host, log }, place);
  });
}
