import { afterAll, describe, expect, test } from "vitest";
import { configMaps } from "../../kube/api/config-map.ts";
import {
  createHostCallFaults,
  IO_FAULTS,
  type HostCallFaults,
  type IoFault,
} from "../../sim/host-call-faults.ts";
import { given, NODE_ROOT, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

/**
 * Every call of the machine in the life of a pod's volumes fails in every way: mounting, a refresh, growing, a restart of
 * the agent, taking down. Then the machine is well again. At no time is something mounted that `volumesInUse` does not
 * name, nothing of a pod that runs is taken away, nothing of another pod is touched; in the end every byte is what it
 * was and nothing is left.
 */
const EVERY = process.env.MOORING_EVERY_STEP !== undefined;
/** Without MOORING_EVERY_STEP=1: this many calls spread over the life, a different set for each fault. */
const SAMPLED = 2;

/** Some of them, others for each fault. */
function pick<T>(all: readonly T[], from: number): readonly T[] {
  return all.filter(
    (_, at) => at % Math.ceil(all.length / SAMPLED) === from % Math.ceil(all.length / SAMPLED),
  );
}

const DATA = "bytes of the pod";
const BLOCK = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "b" } },
} as const;
const HERE = { key: "kubernetes.io/hostname", operator: "In", values: ["n1"] };
const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [HERE] }] } };
const VOLUMES = {
  b: BLOCK,
  dir: { source: { local: { path: "/mnt/dir" }, nodeAffinity } },
  disk: { source: { local: { path: "/dev/sdl", fsType: "ext4" }, nodeAffinity } },
};
const FILESYSTEMS = ["v", "dir", "disk", "scratch", "memory", "settings", "host"];
const WEB: NodePodSketch = {
  uses: ["v", "b", "dir", "disk"],
  inline: [
    { name: "scratch", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "settings", configMap: { name: "settings" } },
    { name: "host", hostPath: { path: "/mnt/host", type: "Directory" } },
  ],
  containers: [
    {
      name: "app",
      image: "x",
      volumeMounts: FILESYSTEMS.map((name) => ({ name, mountPath: `/${name}` })),
      volumeDevices: [{ name: "b", devicePath: "/dev/xvda" }],
    },
  ],
};
const OTHER: NodePodSketch = { uses: ["o"], inline: [{ name: "settings", configMap: { name: "settings" } }] };
const SETTINGS = { namespace: "default", name: "settings" };

async function newWorld(): Promise<NodeWorld> {
  const world = await given({
    volumes: { v: {}, o: {}, ...VOLUMES },
    builtIn: true,
    attached: false,
    started: false,
  });
  const { files } = world.machine;
  for (const path of ["/mnt/dir", "/mnt/host"]) {
    await files.makeDirectories(path, 0o755);
    await files.writeFile(`${path}/kept`, Buffer.from(DATA), 0o644);
  }
  world.machine.addDevice("/dev/sdl", 1 << 30, { wwid: "3600000000000000d" });
  await world.client.create(configMaps, { metadata: SETTINGS, data: { a: "1" } });
  await world.setNodeLabels({ "kubernetes.io/hostname": "n1" });
  for (const label of ["v", "o", "b"]) await world.attach(label);
  await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
  await world.startPod("other", OTHER);
  world.start();
  await world.settle();
  expect(world.manager.getMountedVolumesForPod(world.uidOf("other")).size).toBe(2);
  await world.stop();
  world.takeCalls();
  return world;
}

/** What must hold at any time. */
async function check(world: NodeWorld, where: string): Promise<void> {
  const { points } = await world.machine.mounts.table();
  const inUse = world.inUse();
  for (const label of ["v", "o"])
    if (points.some(({ source }) => source === label)) expect(inUse, `${where}: mounted`).toContain(label);
  if (points.some(({ path }) => path.includes("/pv-b"))) expect(inUse, `${where}: mapped`).toContain("b");
  const paths = points.map(({ path }) => path);
  const layered = paths.filter((path, at) => path.startsWith(NODE_ROOT) && paths.indexOf(path) !== at);
  expect(layered, `${where}: mounted twice`).toEqual([]);
  const theirs = paths.filter((path) => path.includes(`/pods/${world.uidOf("other")}/`));
  expect(theirs.length, `${where}: the other pod`).toBe(1);
}

async function run(world: NodeWorld, host: HostCallFaults, ms: number, where: string): Promise<void> {
  const stepMs = ms > 2_000 ? 500 : 100;
  for (let at = 0; at < ms; at += stepMs) {
    await world.runFor(stepMs);
    await check(world, where);
    if (hasEnded(world)) restart(world, host);
  }
}

/** An agent that cannot read what is on its machine when it starts ends, and is started again. */
function hasEnded(world: NodeWorld): boolean {
  return world.log.splice(0).some(({ message }) => message === "agent failed");
}

function restart(world: NodeWorld, host: HostCallFaults): void {
  world.abandon();
  world.start({ host });
}

/** Until it is so; a fault delays by its back-off, or by the deadline of its call. */
async function runUntil(
  world: NodeWorld,
  host: HostCallFaults,
  where: string,
  isSo: () => boolean | Promise<boolean>,
): Promise<void> {
  for (let tries = 0; tries < 40 && !(await isSo()); tries++)
    await run(world, host, tries < 10 ? 100 : 3_000, where);
}

const mounted = (world: NodeWorld) => world.manager.getMountedVolumesForPod(world.uidOf("web")).size;

async function live(world: NodeWorld, host: HostCallFaults, where: string): Promise<void> {
  const { machine } = world;
  world.start({ host });
  await world.startPod("web", WEB);
  await runUntil(world, host, where, () => mounted(world) === 8);
  const uid = world.uidOf("web");
  const volumes = `${NODE_ROOT}/pods/${uid}/volumes`;
  const data = [
    "kubernetes.io~csi/pv-v/mount",
    "kubernetes.io~local-volume/pv-disk",
    "kubernetes.io~empty-dir/scratch",
  ];
  if (mounted(world) === 8) {
    for (const path of data)
      await machine.files.writeFile(`${volumes}/${path}/kept`, Buffer.from(DATA), 0o644);
    // What a kubelet binds for a container with a subPath.
    const target = `${NODE_ROOT}/pods/${uid}/volume-subpaths/pv-disk/app/0`;
    const root = `${volumes}/kubernetes.io~local-volume/pv-disk`;
    await machine.files.bindSubPath({ root, subPath: "sub", target, readOnly: false });
  }
  const running = mounted(world) === 8;

  await world.client.patch(configMaps, SETTINGS, { type: "merge", value: { data: { a: "2" } } });
  await grow(world);
  await run(world, host, 1_500, where);
  restart(world, host);
  await run(world, host, 1_500, where);

  // Nothing of a pod that runs was taken away, whatever failed.
  if (running) {
    for (const path of data)
      expect(await machine.files.read(`${volumes}/${path}/kept`), `${where}: ${path} of a running pod`).toBe(
        DATA,
      );
    const gone = world.takeCalls().filter((call) => call.startsWith("un"));
    expect(gone, `${where}: a running pod was disturbed`).toEqual([]);
  }
  await world.removePod("web");
  await run(world, host, 2_000, where);
}

async function grow(world: NodeWorld): Promise<void> {
  const books = {
    allocatedResources: { storage: "2Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
  await world.setClaimStatus("v", books);
}

async function end(world: NodeWorld, host: HostCallFaults, where: string): Promise<void> {
  const { machine } = world;
  host.heal();
  const isGone = async () => world.inUse().join() === "o" && (await journaled(world)).length === 0;
  await runUntil(world, host, where, isGone);
  // A record that could not be removed names too much, and goes with the next start.
  if ((await journaled(world)).length > 0) {
    restart(world, host);
    await runUntil(world, host, where, isGone);
  }
  // Directories of pods that are gone are swept once in a while.
  await run(world, host, 1_000, where);
  for (let tries = 0; tries < 30 && (await podDirectories(world)).length > 1; tries++)
    await world.runFor(20_000);

  expect(world.inUse(), where).toEqual(["o"]);
  const left = (await world.mountPoints()).filter((path) => !path.includes(world.uidOf("other")));
  expect(
    left.filter((path) => !/globalmount$/.test(path)),
    where,
  ).toEqual([]);
  expect(left.length, `${where}: ${left.join()}`).toBe(1);
  expect(await podDirectories(world), where).toEqual([world.uidOf("other")]);
  expect(await journaled(world), `${where}: journal`).toEqual([]);
  expect((await machine.files.list(`${NODE_ROOT}/mooring/disks`)) ?? [], `${where}: disks`).toEqual([]);
  expect(machine.kernel.loops.attached(), where).toEqual([]);
  for (const path of ["/mnt/dir", "/mnt/host"])
    expect(await machine.files.read(`${path}/kept`), `${where}: ${path}`).toBe(DATA);
}

/** Volumes with a record, those of the other pod left out. */
async function journaled(world: NodeWorld): Promise<readonly string[]> {
  const { machine } = world;
  const directory = `${NODE_ROOT}/mooring/volumes`;
  const texts = ((await machine.files.list(directory)) ?? []).map(({ name }) =>
    machine.files.read(`${directory}/${name}`),
  );
  const volumes = (await Promise.all(texts)).map(
    (text) => (JSON.parse(text ?? "{}") as { volume: string }).volume,
  );
  return volumes.filter((volume) => !volume.endsWith("^o") && !volume.includes(world.uidOf("other")));
}

async function podDirectories(world: NodeWorld): Promise<readonly string[]> {
  return ((await world.machine.files.list(`${NODE_ROOT}/pods`)) ?? []).map(({ name }) => name);
}

let cases = 0;

async function oneCase(
  fault: IoFault,
  fails: (call: number, name: string) => boolean,
  what: string,
): Promise<HostCallFaults> {
  const world = await newWorld();
  const host = createHostCallFaults(world.machine, world, { fault, fails });
  await live(world, host, what);
  await end(world, host, what);
  world.abandon();
  cases++;
  return host;
}

describe("every call of the machine fails in every way", async () => {
  const calm = await oneCase("EIO", () => false, "nothing fails");
  const total = calm.calls.length;
  const names = [...new Set(calm.calls.map((line) => line.split(" ")[0] ?? ""))];

  for (const [at, fault] of (Object.keys(IO_FAULTS) as IoFault[]).entries()) {
    const numbers = Array.from({ length: total }, (_, call) => call);
    // Prime to the length of a life, so that the faults meet different steps of it.
    const chosen = EVERY ? numbers : pick(numbers, at * 37);
    test(
      `${fault}: once, at ${EVERY ? "each" : "some"} of ${total} calls`,
      { timeout: 1_200_000 },
      async () => {
        for (const call of chosen)
          await oneCase(
            fault,
            (number) => number === call,
            `${fault} at ${calm.calls[call] ?? call} (${call})`,
          );
      },
    );
    test(
      `${fault}: of one kind of call for as long as the pod is there`,
      { timeout: 1_200_000 },
      async () => {
        // Each waits for what never comes: three of the seven are enough where all are not asked for.
        for (const name of EVERY ? names : pick(names, at).slice(0, at % 3 === 0 ? 1 : 0))
          await oneCase(fault, (_, called) => called === name, `${fault} of every ${name}`);
      },
    );
  }
  afterAll(
    () =>
      void process.stdout.write(
        `I/O faults: ${cases} cases; ${total} calls of ${names.length} kinds in a life\n`,
      ),
  );
});
