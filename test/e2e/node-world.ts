// A whole cluster on this machine: API server, controller, attacher and driver as processes, volumes on loop devices.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { Controller } from "../../src/csi/gen/csi_pb.ts";
import { createGrpcChannel } from "../../src/csi/grpc-channel.ts";
import { createClient } from "../../src/csi/methods.ts";
import { mountCapability } from "../../src/driver/stage.testing.ts";
import { csiDrivers } from "../../src/kube/api/csi-driver.ts";
import { persistentVolumeClaims } from "../../src/kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../src/kube/api/persistent-volume.ts";
import { pods } from "../../src/kube/api/pod.ts";
import { accountKubeconfig } from "./account.ts";
import { attacherKubeconfig } from "./attacher-world.ts";
import { DRIVER, givenNode, startWorld, type Connection, type ControllerWorld } from "./controller-world.ts";
import { openRealWorld, type RealWorld } from "./driver-world.ts";
import { Running } from "./mooring.ts";

export const NODE = "node-a";
const MORTAL = resolve(import.meta.dirname, "node-mortal.mjs");
const MINUTE = { timeoutMs: 60_000 };

export interface NodeWorld {
  readonly cluster: ControllerWorld;
  readonly real: RealWorld;
  /** Flags of `mooring node` on this machine, with the rights of deploy/node and no others. */
  readonly flags: readonly string[];
  /** `--root-dir`. */
  readonly root: string;
  stop(): Promise<void>;
}

export async function startNodeWorld(): Promise<NodeWorld> {
  const real = await openRealWorld();
  try {
    return await startProcesses(real);
  } catch (error) {
    await real.close();
    throw error;
  }
}

async function startProcesses(real: RealWorld): Promise<NodeWorld> {
  const root = real.path("kubelet");
  const registry = join(root, "plugins_registry");
  const socket = join(root, "plugins", "loop", "csi.sock");
  for (const directory of [registry, dirname(socket)]) mkdirSync(directory, { recursive: true });
  const data = real.path("data");
  const cluster = await startWorld(data);
  const { admin } = cluster;
  const attacherConfig = await attacherKubeconfig(admin, data);
  const kubeconfig = await nodeKubeconfig(admin, data);
  await givenNode(cluster, NODE);
  await admin.client.create(csiDrivers, { metadata: { name: DRIVER }, spec: { attachRequired: true } });
  const none = ["--http-endpoint", ""];
  const driver = new Running(
    ...["driver", "--drivername", DRIVER, "--nodeid", "machine-a", "--statedir", real.state, ...none],
    ...["--endpoint", socket, "--kubelet-registration-path", socket, "--plugin-registration-path", registry],
  );
  const running = [
    driver,
    new Running("controller", "--kubeconfig", cluster.kubeconfig, "--leader-elect=false", ...none),
    new Running("attacher", "--kubeconfig", attacherConfig, "--csi-address", socket),
  ];
  await driver.says(/"message":"started"/);
  return {
    cluster,
    real,
    root,
    // Calls of this driver take less than a second, and a killed agent should not keep the next one waiting for minutes.
    flags: ["--kubeconfig", kubeconfig, "--node-name", NODE, "--root-dir", root, "--csi-call-window", "1s"],
    async stop() {
      for (const process of running) {
        process.kill("SIGKILL");
        await process.exit();
      }
      await cluster.stop();
      await real.close();
    },
  };
}

/** What deploy/node grants, and nothing else. */
function nodeKubeconfig(connection: Connection, dataDir: string): Promise<string> {
  return accountKubeconfig(connection, dataDir, {
    folder: "node",
    files: ["service-account.yaml", "cluster-role.yaml"],
    serviceAccount: "mooring-node",
  });
}

/** A volume of the driver's, with a PersistentVolume and a claim of that name; answers what the node calls it. */
export async function givenVolume({ cluster, root }: NodeWorld, name: string): Promise<string> {
  const { client } = cluster.admin;
  const socketPath = join(root, "plugins", "loop", "csi.sock");
  const channel = createGrpcChannel({ clock: createSystemClock() }, { socketPath });
  const { volume } = await createClient(Controller, channel).createVolume(
    { name, volumeCapabilities: [mountCapability()], capacityRange: { requiredBytes: 32n << 20n } },
    MINUTE,
  );
  channel.close();
  const capacity = { storage: "32Mi" };
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
      csi: { driver: DRIVER, volumeHandle: volume?.volumeId ?? "" },
      claimRef: { kind: "PersistentVolumeClaim", ...ref, uid: claim.metadata.uid ?? "" },
    },
  });
  const status = { phase: "Bound", accessModes: shared.accessModes, capacity };
  await client.patch(
    persistentVolumeClaims,
    ref,
    { type: "merge", value: { status } },
    { subresource: "status" },
  );
  return `kubernetes.io/csi/${DRIVER}^${volume?.volumeId ?? ""}`;
}

export interface PlacedPod {
  readonly name: string;
  readonly uid: string;
  readonly directory: string;
  /** Where its one volume is mounted. */
  readonly mount: string;
}

/** A pod on the node that uses the claim. */
export async function givenPod(
  { cluster, root }: NodeWorld,
  name: string,
  claimName: string,
): Promise<PlacedPod> {
  const { metadata } = await cluster.admin.client.create(pods, {
    metadata: { namespace: "default", name },
    spec: {
      nodeName: NODE,
      containers: [{ name: "main", image: "none", volumeMounts: [{ name: "data", mountPath: "/data" }] }],
      volumes: [{ name: "data", persistentVolumeClaim: { claimName } }],
    },
  });
  const directory = join(root, "pods", metadata.uid ?? "");
  const mount = join(directory, "volumes", "kubernetes.io~csi", claimName, "mount");
  return { name, uid: metadata.uid ?? "", directory, mount };
}

/** Mount points below the agent's root directory, in mount order; the root itself may be one, to be shared. */
export function mountsBelow(root: string): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${root}/`));
}

/** Resolves when the path is gone; told by its directory. */
export async function untilGone(path: string): Promise<void> {
  const parent = watch(dirname(path));
  while (existsSync(path)) await once(parent, "change");
  parent.close();
}

/** What the agent says when the claim's volume is there; the pod's token is a volume of its own. */
export const isMounted = ({ uid }: PlacedPod) =>
  new RegExp(
    `"volume":"kubernetes.io/csi/[^"]*","operation":"volume_mount","podUid":"${uid}"[^\\n]*"volume step done"`,
  );

/** `mooring node` that can be told to kill itself at one of its next acts. */
export class MortalAgent {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #waiting = new Set<() => void>();
  output = "";

  constructor(flags: readonly string[]) {
    this.#child = fork(MORTAL, ["node", ...flags, "--http-endpoint", ""], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: [],
    });
    this.#exited = once(this.#child, "close");
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
        for (const look of [...this.#waiting]) look();
      });
  }

  /** Counts acts anew, and dies before the given one or a moment after it began. Answers how many there were so far. */
  async countActs(order: { readonly dieAt?: number; readonly amid?: boolean } = {}): Promise<number> {
    this.#child.send(order);
    const [acts] = (await Promise.race([once(this.#child, "message"), this.#exited])) as [number];
    return acts;
  }

  /** Whether it said so before it died. */
  async lived(pattern: RegExp): Promise<boolean> {
    let leave = (): void => undefined;
    const said = new Promise<boolean>((resolve) => {
      const look = () => pattern.test(this.output) && resolve(true);
      this.#waiting.add(look);
      leave = () => void this.#waiting.delete(look);
      look();
    });
    const answer = await Promise.race([said, this.died().then(() => false)]);
    leave();
    return answer;
  }

  async died(): Promise<void> {
    await this.#exited;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.died();
  }
}
