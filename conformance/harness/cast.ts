import { access } from "node:fs/promises";
import type { Binaries } from "../peers/binaries.ts";
import { openApi, type Api } from "./api.ts";
import { startControlPlane, startManager } from "./control-plane.ts";
import { startMooring } from "./mooring.ts";
import { freePort, type Program, type Stage } from "./stage.ts";
import { until } from "./until.ts";

/** Who plays which part; each part can be the real program or ours. */
export interface Cast {
  readonly apiserver: "real" | "ours";
  readonly controller: "real" | "ours";
  readonly attacher: "real" | "ours";
  readonly driver: "host-path" | "ours";
}

export interface Play {
  readonly stage: Stage;
  readonly api: Api;
  readonly kubeconfig: string;
  readonly driver: string;
  readonly node: string;
}

const SOCKET_MS_MAX = 20_000;
const NODE = "node-a";

/** The controllers that a claim needs; what the built-in controller is called since 1.28 comes on top. */
const CLAIM_CONTROLLERS = [
  "persistentvolume-binder-controller",
  "persistentvolumeclaim-protection-controller",
  "persistentvolume-protection-controller",
];
export const ATTACH_DETACH = "persistentvolume-attach-detach-controller";

/** Everything of the cast at work: API server, controllers, driver, provisioner, attacher. */
export async function play<T>(
  stage: Stage,
  { binaries, cast }: { readonly binaries: Binaries; readonly cast: Cast },
  story: (scene: Play) => Promise<T>,
): Promise<T> {
  // Asked first, so that a suite that cannot be run is known before anything is started.
  await binaries.need(...programsOf(cast));
  const server = await startApiserver(stage, { binaries, cast });
  const { api, kubeconfig } = server;
  try {
    await startControllers(stage, { binaries, cast, kubeconfig });
    const { socket, driver } = await startDriver(stage, { binaries, cast });
    await startSidecars(stage, { binaries, cast, kubeconfig, socket });
    return await story({ stage, api, kubeconfig, driver, node: NODE });
  } finally {
    await server.close();
  }
}

function programsOf({ apiserver, attacher, driver }: Cast): string[] {
  return [
    ...(apiserver === "real" ? ["etcd", "kube-apiserver"] : []),
    ...(attacher === "real" ? ["csi-attacher"] : []),
    ...(driver === "host-path" ? ["hostpathplugin"] : []),
    "csi-provisioner",
    "kube-controller-manager",
  ];
}

interface Parts {
  readonly binaries: Binaries;
  readonly cast: Cast;
}

async function startApiserver(stage: Stage, { binaries, cast }: Parts) {
  if (cast.apiserver === "real") return startControlPlane(stage, binaries);
  const data = stage.path("data");
  const port = await freePort();
  startMooring(stage, "apiserver", ["--data-dir", data, "--listen", `127.0.0.1:${port}`]);
  const kubeconfig = stage.path("data", "admin.kubeconfig");
  await until("kubeconfig of mooring apiserver", SOCKET_MS_MAX, () => access(kubeconfig).then(() => true));
  const api = await openApi(kubeconfig);
  await until("mooring apiserver ready", SOCKET_MS_MAX, () => api.find("/api/v1/namespaces/default"));
  return { api, kubeconfig, close: () => api.close() };
}

async function startControllers(
  stage: Stage,
  { binaries, cast, kubeconfig }: Parts & { readonly kubeconfig: string },
): Promise<void> {
  // On the real server everything but the one that ours replaces; ours does not serve what the others work on.
  const others = cast.apiserver === "real" ? ["*"] : CLAIM_CONTROLLERS;
  const own = cast.controller === "real" ? (cast.apiserver === "real" ? [] : [ATTACH_DETACH]) : [];
  const without = cast.controller === "ours" && cast.apiserver === "real" ? [`-${ATTACH_DETACH}`] : [];
  const controllers = [...others, ...own, ...without].join(",");
  const serviceAccountKey = cast.apiserver === "real" ? stage.path("sa.key") : undefined;
  await startManager(stage, { binaries, kubeconfig, controllers, serviceAccountKey });
  if (cast.controller === "ours") startController(stage, kubeconfig);
}

export function startController(stage: Stage, kubeconfig: string): Program {
  return startMooring(stage, "controller", ["--kubeconfig", kubeconfig, "--http-endpoint="]);
}

async function startDriver(stage: Stage, { binaries, cast }: Parts) {
  const socket = stage.path("csi.sock");
  const state = await stage.folder("driver");
  const flags = [`--endpoint=unix://${socket}`, `--nodeid=${NODE}`, `--statedir=${state}`];
  if (cast.driver === "ours") {
    startMooring(stage, "driver", [...flags, "--http-endpoint="]);
  } else {
    const { hostpathplugin = "" } = await binaries.need("hostpathplugin");
    stage.start("hostpathplugin", hostpathplugin, [
      ...flags,
      "--drivername=hostpath.csi.k8s.io",
      // Without it the driver has no ControllerPublishVolume, and an attacher nothing to do.
      "--enable-attach",
    ]);
  }
  await until("socket of the driver", SOCKET_MS_MAX, () => access(socket).then(() => true));
  return { socket, driver: cast.driver === "ours" ? "loop.csi.mooring.dev" : "hostpath.csi.k8s.io" };
}

async function startSidecars(
  stage: Stage,
  { binaries, cast, kubeconfig, socket }: Parts & { readonly kubeconfig: string; readonly socket: string },
): Promise<void> {
  const programs = await binaries.need("csi-provisioner");
  const flags = [`--csi-address=${socket}`, `--kubeconfig=${kubeconfig}`];
  stage.start("csi-provisioner", programs["csi-provisioner"] ?? "", [
    ...flags,
    "--leader-election=false",
    // Volumes go where the pod is; there is one node.
    "--feature-gates=Topology=false",
  ]);
  if (cast.attacher === "ours") {
    startMooring(stage, "attacher", flags);
    return;
  }
  const attacher = await binaries.need("csi-attacher");
  stage.start("csi-attacher", attacher["csi-attacher"] ?? "", [...flags, "--leader-election=false"]);
}
