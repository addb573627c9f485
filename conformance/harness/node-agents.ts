import { access, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import type { Binaries } from "../peers/binaries.ts";
import { Unavailable } from "../peers/binaries.ts";
import { startMooring } from "./mooring.ts";
import { freePort, type Stage } from "./stage.ts";

/** Whoever mounts on the node, in a root directory of its own. */
export interface AgentTask {
  readonly binaries: Binaries;
  readonly kubeconfig: string;
  readonly node: string;
  /** Its root directory, with `plugins_registry` in it. */
  readonly root: string;
}

const CONTAINERD_MS_MAX = 60_000;
/** Kubelets keep this one outside of their root directory, whatever they are told. */
const DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins";
const OUTSIDE = [
  DEVICE_PLUGINS,
  "/var/lib/kubelet",
  "/var/log/containers",
  "/usr/libexec/kubernetes/kubelet-plugins/volume/exec",
];
/** What a kubelet sets for the whole machine as it starts. */
const TUNABLES = ["vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"];

/** Asked before anything is started. */
export async function needKubelet(binaries: Binaries): Promise<void> {
  await binaries.need("containerd", "runc", "kubelet");
  if (await exists(`${DEVICE_PLUGINS}/kubelet.sock`))
    throw new Unavailable("kubelet: this machine is a node already, and a second one would disturb it");
}

/**
 * A real kubelet on a containerd of its own. There is no image and no network: volumes are mounted before the sandbox is
 * made, so the pod's containers never start, and nothing here depends on it.
 */
export async function startKubelet(stage: Stage, task: AgentTask): Promise<void> {
  const { binaries, kubeconfig, node, root } = task;
  const programs = await binaries.need("containerd", "kubelet");
  await keepMachine(stage);
  const socket = stage.path("containerd.sock");
  await writeFile(stage.path("containerd.toml"), containerdText(stage, socket));
  stage.start("containerd", programs["containerd"] ?? "", ["--config", stage.path("containerd.toml")]);
  await stage.until("socket of containerd", CONTAINERD_MS_MAX, () => exists(socket));
  const port = await freePort();
  await writeFile(stage.path("kubelet.json"), kubeletText(stage, { socket, port }));
  stage.start("kubelet", programs["kubelet"] ?? "", [
    `--config=${stage.path("kubelet.json")}`,
    `--kubeconfig=${kubeconfig}`,
    `--root-dir=${root}`,
    `--cert-dir=${stage.path("kubelet-certs")}`,
    `--hostname-override=${node}`,
  ]);
}

/** `mooring node` in its place. */
export function startNodeAgent(stage: Stage, { kubeconfig, node, root }: AgentTask): void {
  startMooring(stage, "node", [
    "--kubeconfig",
    kubeconfig,
    "--node-name",
    node,
    "--root-dir",
    root,
    "--http-endpoint=",
  ]);
}

/** The machine as it was: kernel settings, and the folders that were not there before. */
async function keepMachine(stage: Stage): Promise<void> {
  const before = await Promise.all(
    TUNABLES.map(async (name) => [`/proc/sys/${name}`, await readFile(`/proc/sys/${name}`, "utf8")] as const),
  );
  const present = await Promise.all(OUTSIDE.map(exists));
  stage.atEnd(async () => {
    for (const [path, value] of before) await writeFile(path, value);
    for (const [index, folder] of OUTSIDE.entries()) if (present[index] === false) await removeEmpty(folder);
  });
}

/** With what kubelets leave in it, but not with what somebody else put there. */
async function removeEmpty(folder: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((left) =>
    /^(kubelet\.sock|kubelet_internal_checkpoint|DEPRECATION)$/.test(left),
  ))
    await rm(`${folder}/${name}`, { force: true });
  await rmdir(folder).catch(() => undefined);
}

function containerdText(stage: Stage, socket: string): string {
  return [
    "version = 2",
    `root = "${stage.path("containerd")}"`,
    `state = "${stage.path("containerd-state")}"`,
    "oom_score = 0",
    "[grpc]",
    `address = "${socket}"`,
    '[plugins."io.containerd.grpc.v1.cri"]',
    'stream_server_address = "127.0.0.1"',
    '[plugins."io.containerd.grpc.v1.cri".containerd]',
    // The one that needs nothing of the file system below.
    'snapshotter = "native"',
    "",
  ].join("\n");
}

function kubeletText(stage: Stage, { socket, port }: { socket: string; port: number }): string {
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: "127.0.0.1",
    port,
    healthzPort: 0,
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    containerRuntimeEndpoint: `unix://${socket}`,
    cgroupDriver: "cgroupfs",
    // Releases from 1.35 on refuse to start on a machine with cgroup v1 otherwise.
    failCgroupV1: false,
    failSwapOn: false,
    // No cgroups, firewall rules or evictions on a machine that is somebody's workplace.
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    makeIPTablesUtilChains: false,
    localStorageCapacityIsolation: false,
    evictionHard: { "memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%" },
    podLogsDir: stage.path("pod-logs"),
    volumePluginDir: stage.path("volume-plugins"),
  });
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
