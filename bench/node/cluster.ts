import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { silentLogger } from "../../src/base/log.ts";
import { noMetrics } from "../../src/base/metrics.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { createSystemRandom } from "../../src/base/system-random.ts";
import { csiDrivers } from "../../src/kube/api/csi-driver.ts";
import { MANAGED_ATTACH_ANNOTATION, nodes } from "../../src/kube/api/node.ts";
import { persistentVolumeClaims } from "../../src/kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../src/kube/api/persistent-volume.ts";
import { pods } from "../../src/kube/api/pod.ts";
import { createClient } from "../../src/kube/client/api-client.ts";
import type { Client } from "../../src/kube/client/client.ts";
import { loadClusterAccess } from "../../src/kube/config/load.ts";
import { createHttpTransport } from "../../src/kube/transport/http-transport.ts";
import { createLocalWorld } from "../../src/processes/local-world.ts";
import { DRIVER, run, startDriver, type InstantDriver } from "./driver.ts";

export const NODE = "bench-node";
/** The program as it is built beside this file. */
const MOORING = fileURLToPath(new URL("../../src/cli/main.js", import.meta.url));

/** One node with everything around it, a process each, as a cluster has them; only the driver is ours. */
export interface NodeCluster {
  readonly client: Client;
  readonly driver: InstantDriver;
  readonly rootDir: string;
  /** Starts the agent and resolves when it has taken stock; answers how long that took, from before its start. */
  startAgent(): Promise<number>;
  killAgent(): Promise<void>;
  /** Of the agent's process. */
  agentRssMib(): Promise<number>;
  agentPid(): number;
  /** Where the agent serves `/livez`. */
  readonly endpoint: string;
  volumesInUse(): Promise<readonly string[]>;
  /** Mounts of others on this machine: only the table grows. */
  addMounts(count: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startCluster({ mounts }: { mounts: boolean }): Promise<NodeCluster> {
  const root = await mkdtemp(join(tmpdir(), "mooring-bench-"));
  const rootDir = join(root, "kubelet");
  const registry = join(rootDir, "plugins_registry");
  const socketPath = join(root, "csi.sock");
  await mkdir(registry, { recursive: true });
  const server = start("apiserver", "--data-dir", join(root, "data"), "--listen", "127.0.0.1:0");
  const running = [server];
  await server.says("serving");
  const kubeconfig = join(root, "data", "admin.kubeconfig");
  const { client, close } = await connect(kubeconfig);
  await givenNode(client);
  const driver = await startDriver({ socketPath, registry, mounts });
  const none = ["--http-endpoint", ""];
  running.push(start("controller", "--kubeconfig", kubeconfig, "--leader-elect=false", ...none));
  running.push(start("attacher", "--kubeconfig", kubeconfig, "--csi-address", socketPath));
  let agent: Program | undefined;
  const endpoint = `127.0.0.1:${await freePort()}`;
  return {
    client,
    driver,
    rootDir,
    endpoint: `http://${endpoint}`,
    agentPid: () => agent?.pid ?? 0,
    async startAgent() {
      const beganMs = clock.now();
      const flags = ["--kubeconfig", kubeconfig, "--node-name", NODE, "--root-dir", rootDir];
      agent = start("node", ...flags, "--http-endpoint", endpoint);
      await agent.says("states synced");
      return clock.now() - beganMs;
    },
    async killAgent() {
      await agent?.kill();
    },
    async agentRssMib() {
      const text = await readFile(`/proc/${agent?.pid ?? 0}/status`, "utf8");
      return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(text)?.[1]) / 1_024);
    },
    async volumesInUse() {
      const { status } = await client.get(nodes, { name: NODE });
      return status?.volumesInUse ?? [];
    },
    async addMounts(count) {
      for (let n = 0; n < count; n++) {
        const path = join(root, "others", String(n));
        await mkdir(path, { recursive: true });
        await run("mount", ["-t", "tmpfs", "-o", "size=4k", "bench", path]);
      }
    },
    async stop() {
      for (const program of [agent, ...running.reverse()]) await program?.kill();
      await driver.stop();
      await close();
      await unmountBelow(root);
      await rm(root, { recursive: true, force: true });
    },
  };
}

const clock = createSystemClock();

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

interface Program {
  readonly pid: number;
  says(message: string): Promise<void>;
  kill(): Promise<void>;
}

function start(...args: string[]): Program {
  const child = spawn(process.execPath, [MOORING, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "close");
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  return {
    pid: child.pid ?? 0,
    async says(message) {
      const ended = exited.then(() => {
        throw new Error(`mooring ${args[0]} ended: ${output.slice(-2_000)}`);
      });
      ended.catch(() => undefined);
      while (!output.includes(`"message":"${message}"`))
        await Promise.race([once(child.stderr, "data"), ended]);
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function connect(kubeconfig: string): Promise<{ client: Client; close: () => Promise<void> }> {
  const access = await loadClusterAccess(
    { world: createLocalWorld(), clock, log: silentLogger },
    { kubeconfig },
  );
  const transport = createHttpTransport(access, { clock });
  const client = createClient({ transport, clock, random: createSystemRandom(), metrics: noMetrics });
  return { client, close: () => transport.close() };
}

async function givenNode(client: Client): Promise<void> {
  await client.create(nodes, {
    metadata: { name: NODE, annotations: { [MANAGED_ATTACH_ANNOTATION]: "true" } },
  });
  const value = { status: { conditions: [{ type: "Ready", status: "True" }] } };
  await client.patch(nodes, { name: NODE }, { type: "merge", value }, { subresource: "status" });
  await client.create(csiDrivers, { metadata: { name: DRIVER }, spec: { attachRequired: true } });
}

/** A volume and a claim bound to it, both named after the handle. */
export async function givenVolume({ client }: NodeCluster, name: string): Promise<void> {
  const capacity = { storage: "1Gi" };
  const shared = { accessModes: ["ReadWriteOnce"], storageClassName: "" };
  const ref = { namespace: "default", name };
  const claim = await client.create(persistentVolumeClaims, {
    metadata: ref,
    spec: { ...shared, volumeName: name, resources: { requests: capacity } },
  });
  await client.create(persistentVolumes, {
    metadata: { name },
    spec: {
      ...shared,
      capacity,
      csi: { driver: DRIVER, volumeHandle: name },
      claimRef: { kind: "PersistentVolumeClaim", ...ref, uid: claim.metadata.uid ?? "" },
    },
  });
  const value = { status: { phase: "Bound", accessModes: shared.accessModes, capacity } };
  await client.patch(persistentVolumeClaims, ref, { type: "merge", value }, { subresource: "status" });
}

/** A pod that is bound to the node and uses the claim of its name, and nothing else. */
export async function bindPod({ client }: NodeCluster, name: string): Promise<void> {
  await client.create(pods, {
    metadata: { namespace: "default", name },
    spec: {
      nodeName: NODE,
      automountServiceAccountToken: false,
      containers: [{ name: "main", image: "none", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName: name } }],
    },
  });
}

export async function deletePod({ client }: NodeCluster, name: string): Promise<void> {
  await client.delete(pods, { namespace: "default", name }, { gracePeriodSeconds: 0 });
}

async function unmountBelow(root: string): Promise<void> {
  const table = await readFile("/proc/self/mountinfo", "utf8");
  const mounts = table.split("\n").map((line) => line.split(" ")[4] ?? "");
  for (const path of mounts.filter((one) => one.startsWith(`${root}/`)).reverse())
    await run("umount", ["--lazy", path]).catch(() => undefined);
}
