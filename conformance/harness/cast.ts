import { access } from "node:fs/promises";
import type { Binaries } from "../peers/binaries.ts";
import type { Api } from "./api.ts";
import { startControlPlane, startManager, startScheduler } from "./control-plane.ts";
import { startEmbedded } from "./embedded.ts";
import { startMooring } from "./mooring.ts";
import { needKubelet, startKubelet, startNodeAgent } from "./node-agents.ts";
import type { Program, Stage } from "./stage.ts";

/** Who plays which part; each part can be the real program or ours. */
export interface Cast {
  readonly apiserver: "real" | "ours";
  readonly controller: "real" | "ours";
  readonly attacher: "real" | "ours";
  readonly driver: "host-path" | "ours";
  /** Who mounts on the node; `absent` for nobody: the node is then an object of the API and nothing more. */
  readonly node: "absent" | "kubelet" | "ours";
  /** Pods name their node themselves, or kube-scheduler does and claims wait for it. */
  readonly scheduler: "absent" | "real";
}

export interface Play {
  readonly stage: Stage;
  readonly api: Api;
  readonly cast: Cast;
  readonly driver: string;
  /** The driver's log, which tells what it was called for. */
  readonly driverLog: string;
  readonly driverState: string;
  readonly node: string;
  /** Of the node's agent. */
  readonly root: string;
  /** `mooring node`, once there is a Node object for it. */
  startAgent(): void;
}

const SOCKET_MS_MAX = 60_000;
const NODE = "node-a";
const HOST_PATH = "hostpath.csi.k8s.io";

export const ATTACH_DETACH = "persistentvolume-attach-detach-controller";

interface PlayTask {
  readonly binaries: Binaries;
  readonly cast: Cast;
}

/** Everything of the cast at work: API server, controllers, driver, provisioner, attacher. */
export async function play<T>(
  stage: Stage,
  { binaries, cast }: PlayTask,
  story: (scene: Play) => Promise<T>,
): Promise<T> {
  await needCast(binaries, cast);
  const server = await startApiserver(stage, { binaries, cast });
  try {
    return await playOn(stage, { binaries, cast, server, node: NODE }, story);
  } finally {
    await server.close();
  }
}

/** Asked first, so that a suite that cannot be run is known before anything is started. */
export async function needCast(binaries: Binaries, cast: Cast): Promise<void> {
  await binaries.need(...programsOf(cast));
  if (cast.node === "kubelet") await needKubelet(binaries);
}

/** As `play`, on a server that was there before and stays. */
export async function playOn<T>(
  stage: Stage,
  { binaries, cast, server, node }: PlayTask & { readonly server: Server; readonly node: string },
  story: (scene: Play) => Promise<T>,
): Promise<T> {
  const { api, kubeconfig } = server;
  await startControllers(stage, { binaries, cast, server });
  const registry = await stage.folder("kubelet", "plugins_registry");
  const root = stage.path("kubelet");
  const driver = await startDriver(stage, { binaries, cast, registry, node });
  await startSidecars(stage, { binaries, cast, kubeconfig, registry, socket: driver.socket });
  if (cast.node === "kubelet") await startKubelet(stage, { binaries, kubeconfig, node, root });
  return story({
    ...{ stage, api, cast, node, root },
    ...{ driver: driver.name, driverLog: driver.log, driverState: driver.state },
    startAgent: () => startNodeAgent(stage, { binaries, kubeconfig, node, root }),
  });
}

function programsOf({ apiserver, attacher, driver, node, scheduler }: Cast): string[] {
  return [
    ...(apiserver === "real" ? ["etcd", "kube-apiserver"] : []),
    ...(attacher === "real" ? ["csi-attacher"] : []),
    ...(driver === "host-path" ? ["hostpathplugin"] : []),
    ...(driver === "host-path" && node !== "absent" ? ["csi-node-driver-registrar"] : []),
    ...(scheduler === "real" ? ["kube-scheduler"] : []),
    "csi-provisioner",
    "kube-controller-manager",
  ];
}

/** The API server of a play. */
export interface Server {
  readonly api: Api;
  readonly kubeconfig: string;
  /** Absent on ours, which signs no tokens with a key of the caller. */
  readonly serviceAccountKey?: string;
  close(): Promise<void>;
}

async function startApiserver(stage: Stage, { binaries, cast }: PlayTask): Promise<Server> {
  if (cast.apiserver === "real") return startControlPlane(stage, binaries);
  return startEmbedded(stage, { flags: ["--controllers=event-expiry"] });
}

async function startControllers(
  stage: Stage,
  { binaries, cast, server }: PlayTask & { readonly server: Server },
): Promise<void> {
  const { kubeconfig, serviceAccountKey } = server;
  const controllers = cast.controller === "ours" ? `*,-${ATTACH_DETACH}` : "*";
  await startManager(stage, { binaries, kubeconfig, controllers, serviceAccountKey });
  if (cast.controller === "ours") startController(stage, kubeconfig);
  if (cast.scheduler === "real") await startScheduler(stage, { binaries, kubeconfig });
}

export function startController(stage: Stage, kubeconfig: string): Program {
  return startMooring(stage, "controller", ["--kubeconfig", kubeconfig, "--http-endpoint="]);
}

async function startDriver(
  stage: Stage,
  { binaries, cast, registry, node }: PlayTask & { readonly registry: string; readonly node: string },
) {
  const socket = stage.path("csi.sock");
  const state = await stage.folder("driver");
  const flags = [`--endpoint=unix://${socket}`, `--nodeid=${node}`, `--statedir=${state}`];
  const { log } =
    cast.driver === "ours"
      ? startMooring(stage, "driver", [
          ...flags,
          "--http-endpoint=",
          ...registrationOf({ cast, socket, registry }),
        ])
      : await startHostPath(stage, { binaries, flags });
  await stage.until("socket of the driver", SOCKET_MS_MAX, () => access(socket).then(() => true));
  return { socket, state, log, name: cast.driver === "ours" ? "loop.csi.mooring.dev" : HOST_PATH };
}

async function startHostPath(
  stage: Stage,
  { binaries, flags }: { readonly binaries: Binaries; readonly flags: readonly string[] },
): Promise<Program> {
  const { hostpathplugin = "" } = await binaries.need("hostpathplugin");
  return stage.start("hostpathplugin", hostpathplugin, [
    ...flags,
    `--drivername=${HOST_PATH}`,
    // Without it the driver has no ControllerPublishVolume, and an attacher nothing to do.
    "--enable-attach",
    // Every call is a line.
    "--v=5",
  ]);
}

interface Registration {
  readonly cast: Cast;
  readonly socket: string;
  readonly registry: string;
}

/** How an agent hears of the driver: flags of our driver, and of the real registrar beside another one. */
function registrationOf({ cast, socket, registry }: Registration): string[] {
  if (cast.node === "absent") return [];
  return [`--kubelet-registration-path=${socket}`, `--plugin-registration-path=${registry}`];
}

async function startSidecars(
  stage: Stage,
  { binaries, kubeconfig, ...registration }: PlayTask & Registration & { readonly kubeconfig: string },
): Promise<void> {
  const { cast, socket } = registration;
  const programs = await binaries.need("csi-provisioner");
  const flags = [`--csi-address=${socket}`, `--kubeconfig=${kubeconfig}`];
  stage.start("csi-provisioner", programs["csi-provisioner"] ?? "", [
    ...flags,
    "--leader-election=false",
    // Volumes go where the pod is; there is one node.
    "--feature-gates=Topology=false",
  ]);
  if (cast.driver === "host-path" && cast.node !== "absent") {
    const registrar = await binaries.need("csi-node-driver-registrar");
    const place = [`--csi-address=${socket}`, ...registrationOf(registration)];
    stage.start("csi-node-driver-registrar", registrar["csi-node-driver-registrar"] ?? "", place);
  }
  if (cast.attacher === "ours") {
    startMooring(stage, "attacher", flags);
    return;
  }
  const attacher = await binaries.need("csi-attacher");
  stage.start("csi-attacher", attacher["csi-attacher"] ?? "", [...flags, "--leader-election=false"]);
}
