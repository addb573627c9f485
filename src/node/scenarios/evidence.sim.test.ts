import { describe, expect, test } from "vitest";
import type { Volume } from "kubernetes-types/core/v1.js";
import type { Host } from "../host.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE_ROOT, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

/**
 * Containers that outlive their pod. As long as a process has a volume, the volume stays where it is and in
 * `volumesInUse`, whatever the API says; when the last one has ended, it goes by itself.
 */

/** Longer than the longest pause between two looks. */
const SOON_MS = 20_000;
/** As long as a container that nobody ended may go on. */
const LONG_MS = 300_000;

const BLOCK = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "v" } },
} as const;
const BLOCK_POD: NodePodSketch = {
  uses: ["v"],
  containers: [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }],
};
const SCRATCH: Volume = { name: "scratch", emptyDir: {} };

const podDirectory = (world: NodeWorld, name: string) => `${NODE_ROOT}/pods/${world.uidOf(name)}`;
const targetOf = (world: NodeWorld, name: string, label = "v") =>
  `${podDirectory(world, name)}/volumes/kubernetes.io~csi/pv-${label}/mount`;

function waitsOf(world: NodeWorld) {
  return world.manager
    .report()
    .volumes.flatMap(({ pods, waitingFor }) => [waitingFor, ...pods.map((pod) => pod.waitingFor)])
    .filter((wait) => wait !== undefined);
}

/** One way to have a volume after its pod has gone, and how the machine shows that it is still there. */
interface Way {
  readonly pod?: NodePodSketch;
  readonly volumes?: Parameters<typeof given>[0] extends infer S
    ? S extends { volumes?: infer V }
      ? V
      : never
    : never;
  /** Starts the container; answers its pid. */
  readonly container: (world: NodeWorld) => number | Promise<number>;
  readonly isThere: (world: NodeWorld, directory: string) => Promise<boolean>;
}

const isMounted = async (world: NodeWorld, directory: string) =>
  (await world.mountPoints()).some((path) => path.startsWith(`${directory}/`));

const WAYS: Readonly<Record<string, Way>> = {
  "the volume mounted, in a namespace of its own": {
    container: (world) => world.machine.startProcess({ binds: [targetOf(world, "web")] }),
    isThere: isMounted,
  },
  "a part of the volume mounted (subPath)": {
    async container(world) {
      const { files, mounts } = world.machine;
      const place = `${podDirectory(world, "web")}/volume-subpaths/pv-v/app/0`;
      await files.makeDirectories(`${targetOf(world, "web")}/sub`, 0o750);
      await files.makeDirectories(place, 0o750);
      await mounts.bind(`${targetOf(world, "web")}/sub`, place, []);
      return world.machine.startProcess({ binds: [place] });
    },
    isThere: isMounted,
  },
  "nothing mounted that anybody sees, but the pod's control group": {
    container: (world) => world.machine.startProcess({ podUid: world.uidOf("web") }),
    isThere: isMounted,
  },
  "the device of a raw block volume open": {
    volumes: { v: BLOCK },
    pod: BLOCK_POD,
    container: (world) => world.machine.startProcess({ opens: ["/dev/v"] }),
    isThere: async (world, directory) =>
      (await world.machine.files.readLink(`${directory}/volumeDevices/kubernetes.io~csi/pv-v`)) !== undefined,
  },
  "the device file of a raw block volume bound": {
    volumes: { v: BLOCK },
    pod: BLOCK_POD,
    container: (world) => world.machine.startProcess({ binds: ["/dev/v"] }),
    isThere: async (world, directory) =>
      (await world.machine.files.readLink(`${directory}/volumeDevices/kubernetes.io~csi/pv-v`)) !== undefined,
  },
  "an emptyDir on the disk": {
    pod: { uses: ["v"], inline: [SCRATCH] },
    async container(world) {
      const scratch = `${podDirectory(world, "web")}/volumes/kubernetes.io~empty-dir/scratch`;
      await world.machine.files.writeFile(`${scratch}/precious`, Buffer.from("x"), 0o600);
      return world.machine.startProcess({ binds: [targetOf(world, "web"), scratch] });
    },
    isThere: async (world, directory) =>
      (await isMounted(world, directory)) &&
      (await world.machine.files.read(`${directory}/volumes/kubernetes.io~empty-dir/scratch/precious`)) ===
        "x",
  },
};

const ENDS: Readonly<Record<string, (world: NodeWorld) => Promise<void>>> = {
  "deleted by force": (world) => world.removePod("web"),
  "replaced by one of the same name": async (world) => {
    await world.removePod("web");
    await world.startPod("web", { uses: [] });
  },
  "said to be over": (world) => world.setPodStatus("web", { phase: "Failed" }),
  "deleted by force while the agent was away": async (world) => {
    await world.stop();
    await world.removePod("web");
    world.start();
  },
  "deleted by force, and the agent killed": async (world) => {
    await world.removePod("web");
    world.abandon();
    world.start();
  },
};

describe("a pod that is gone, and a process that still has", () => {
  for (const [way, { pod = { uses: ["v"] }, volumes, container, isThere }] of Object.entries(WAYS))
    for (const [end, remove] of Object.entries(ENDS))
      test(`${way}; the pod is ${end}`, async () => {
        const world = await given({ pods: { web: pod }, builtIn: true, ...(volumes && { volumes }) });
        const directory = podDirectory(world, "web");
        const pid = await container(world);
        world.takeCalls();

        await remove(world);
        for (let passed = 0; passed < LONG_MS; passed += 20_000) {
          await world.runFor(20_000);
          expect(world.inUse()).toEqual(["v"]);
          expect(await isThere(world, directory)).toBe(true);
        }
        expect(world.takeCalls().filter((call) => /^un/.test(call))).toEqual([]);
        expect(waitsOf(world)).toContainEqual(
          expect.objectContaining({
            reason: "held-by-process",
            object: { kind: "Process", name: `${pid} (app)` },
            message: expect.stringContaining("let go once that process has ended") as string,
          }),
        );

        world.machine.endProcess(pid);
        await world.runFor(SOON_MS);
        await world.settle();

        expect(world.takeCalls().filter((call) => /^un/.test(call))).toHaveLength(2);
        expect(world.inUse()).toEqual([]);
        expect(await world.mountPoints()).toEqual([]);
        world.abandon();
      });

  test("the staged volume, after its own pod's target went: not unstaged", async () => {
    const world = await given({ pods: { a: { uses: ["v"] }, b: { uses: ["v"] } } });
    // Nothing says whose it is, and another pod has the volume: it stays for that one.
    const pid = world.machine.startProcess({ binds: [targetOf(world, "a")] });
    world.takeCalls();

    await world.removePod("a");
    await world.runFor(SOON_MS);
    expect(world.takeCalls()).toEqual(["unpublish v a"]);
    await world.removePod("b");
    await world.runFor(LONG_MS);

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
    world.machine.endProcess(pid);
    await world.runFor(SOON_MS);
    expect(world.takeCalls()).toEqual(["unpublish v b", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("a volume that somebody unmounted from under its pod: the process has it from the staged one, which stays", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } } });
    const pid = world.machine.startProcess({ binds: [targetOf(world, "web")] });
    await world.machine.mounts.unmount(targetOf(world, "web"));
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(LONG_MS);
    expect(world.takeCalls()).toEqual(["unpublish v web"]);
    expect(world.inUse()).toEqual(["v"]);

    world.machine.endProcess(pid);
    await world.runFor(SOON_MS);
    expect(world.takeCalls()).toEqual(["unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("a volume that another pod has, too: the control group says whose the process is", async () => {
    const world = await given({ pods: { a: { uses: ["v"] }, b: { uses: ["v"] } } });
    const [ofA, ofB] = ["a", "b"].map((name) =>
      world.machine.startProcess({ podUid: world.uidOf(name), binds: [targetOf(world, name)] }),
    );
    world.takeCalls();

    await world.removePod("a");
    await world.runFor(LONG_MS);
    expect(world.takeCalls()).toEqual([]);
    world.machine.endProcess(ofA!);
    await world.runFor(SOON_MS);
    expect(world.takeCalls()).toEqual(["unpublish v a"]);

    await world.removePod("b");
    await world.runFor(LONG_MS);
    expect(world.takeCalls()).toEqual([]);
    world.machine.endProcess(ofB!);
    await world.runFor(SOON_MS);
    expect(world.takeCalls()).toEqual(["unpublish v b", "unstage v"]);
  });

  test("a ReadWriteOncePod volume: the next pod waits for the process, not for the object", async () => {
    const world = await given({
      volumes: { v: { modes: ["ReadWriteOncePod"] } },
      pods: { a: { uses: ["v"] } },
    });
    const pid = world.machine.startProcess({ binds: [targetOf(world, "a")] });
    world.takeCalls();

    await world.removePod("a");
    await world.startPod("b", { uses: ["v"] });
    await world.runFor(LONG_MS);
    expect(world.takeCalls()).toEqual([]);

    world.machine.endProcess(pid);
    await world.runFor(SOON_MS);
    expect(world.takeCalls()).toEqual(["unpublish v a", "publish v b"]);
  });

  test("a process of the host that works in the volume: the failed unmount names it, and so does the next pod's event", async () => {
    const world = await given({ pods: { a: { uses: ["v"] } } });
    const pid = world.machine.startProcess({ command: "bash", worksIn: targetOf(world, "a") });
    world.driver.fail("unpublish", "INTERNAL", { times: 9 });
    const who = `process ${pid} (bash) has its working directory at ${targetOf(world, "a")}`;
    await world.removePod("a");
    await world.startPod("b", { uses: ["v"] });

    await world.runFor(40_000);

    const [volume] = world.manager.report().volumes;
    for (const { waitingFor } of volume?.pods ?? []) expect(waitingFor?.message).toContain(who);
    expect(volume?.pods).toHaveLength(2);
    const told = world.told().filter((line) => line.includes("is not mounted yet"));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(`is taken from pod default/a first; volume_unmount (NodeUnpublishVolume`);
    expect(told[0]).toContain(who);
  });

  test("a process that has the volume is named with its pod on the page, and in the next pod's event", async () => {
    const world = await given({ pods: { a: { uses: ["v"] } } });
    const pid = world.machine.startProcess({ command: "app", binds: [targetOf(world, "a")] });
    await world.removePod("a");
    await world.startPod("b", { uses: ["v"] });

    await world.runFor(40_000);

    const told = world.told().filter((line) => line.includes("is not mounted yet"));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(`v of pod default/a stays while process ${pid} (app) has it mounted at /data0`);
  });

  test("a look that fails proves nothing: the volume stays until one succeeds", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    world.start({ host });
    await world.settle();
    host.fail("processes.scan", { code: "TimedOut", times: 10 });
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(60_000);
    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
    expect(waitsOf(world)[0]).toMatchObject({
      reason: "held-by-process",
      message: expect.stringContaining("nobody could tell") as string,
    });

    await world.runFor(120_000);
    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
  });

  test("a pod that wants it again while the look is under way keeps it", async () => {
    const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    world.start({ host });
    await world.settle();
    host.delay("processes.scan", { ms: 200 });
    world.takeCalls();

    await world.setPodStatus("web", { phase: "Failed" });
    await world.runFor(100);
    await world.setPodStatus("web", { phase: "Running" });
    await world.runFor(60_000);

    expect(world.takeCalls().filter((call) => call.startsWith("un"))).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
  });
});

describe("directories below pods/", () => {
  test("one of a pod that is gone stays while a process has anything of it", async () => {
    const world = await given({ started: false });
    const directory = `${NODE_ROOT}/pods/11111111-1111-4111-8111-111111111111`;
    await world.machine.files.makeDirectories(`${directory}/containers/app`, 0o750);
    const pid = world.machine.startProcess({ binds: [`${directory}/containers/app`] });

    world.start();
    await world.runFor(600_000);
    expect(await world.machine.files.list(directory)).toHaveLength(1);

    world.machine.endProcess(pid);
    await world.runFor(60_000);
    expect(await world.machine.files.list(directory)).toBeUndefined();
  });

  test("those of static pods are a kubelet's: nothing of them is touched, mounted or not", async () => {
    const uid = "0123456789abcdef0123456789abcdef";
    const world = await given({ started: false, builtIn: true });
    const { files, mounts } = world.machine;
    const volumes = `${NODE_ROOT}/pods/${uid}/volumes`;
    await files.makeDirectories(`${volumes}/kubernetes.io~empty-dir/ram`, 0o750);
    await files.makeDirectories(`${volumes}/kubernetes.io~empty-dir/empty`, 0o750);
    await mounts.mount({
      source: "tmpfs",
      target: `${volumes}/kubernetes.io~empty-dir/ram`,
      type: "tmpfs",
      options: [],
    });
    const before = world.machine.describe(`${NODE_ROOT}/pods`);

    world.start();
    await world.runFor(900_000);

    expect(world.machine.describe(`${NODE_ROOT}/pods`)).toEqual(before);
    expect(await world.manager.listOrphans()).toEqual([]);
  });

  test("nor that of one whose manifest names its uid, which only its mirror tells", async () => {
    const uid = "22222222-2222-4222-8222-222222222222";
    const world = await given({ started: false, builtIn: true });
    await world.machine.files.makeDirectories(`${NODE_ROOT}/pods/${uid}/volumes`, 0o750);
    await world.startPod("static", { annotations: { "kubernetes.io/config.mirror": uid } });

    world.start();
    await world.runFor(900_000);

    expect(await world.machine.files.list(`${NODE_ROOT}/pods/${uid}`)).toHaveLength(1);
  });
});

test("110 pods with four volumes each that go at once cost a few looks at the machine, not 440", async () => {
  const names = Array.from({ length: 110 }, (_, n) => `p${String(n).padStart(3, "0")}x`);
  const inline: Volume[] = ["a", "b", "c", "d"].map((name) => ({ name, emptyDir: {} }));
  const world = await given({
    pods: Object.fromEntries(names.map((name) => [name, { inline }])),
    builtIn: true,
    started: false,
  });
  let scans = 0;
  const host: Host = {
    ...world.machine,
    processes: {
      async scan(request) {
        scans++;
        // As long as a real one takes.
        await world.clock.sleep(50);
        return world.machine.processes.scan(request);
      },
    },
  };
  world.start({ host });
  await world.runFor(10_000);
  expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toHaveLength(110);

  for (const name of names) await world.removePod(name);
  await world.runFor(10_000);

  expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toHaveLength(0);
  // Two of their volumes; of their directories, 16 of which are looked at together.
  expect(scans).toBeLessThanOrEqual(20);
  world.abandon();
}, 30_000);
