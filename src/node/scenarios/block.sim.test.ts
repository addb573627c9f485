import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { given, NODE, NODE_ROOT, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

const DEVICES = `${NODE_ROOT}/plugins/kubernetes.io/csi/volumeDevices`;
const BLOCK = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "v" } },
} as const;
const POD: NodePodSketch = {
  uses: ["v"],
  containers: [{ name: "app", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/xvda" }] }],
};

const mapped = (pods: Record<string, NodePodSketch> = { web: POD }) => given({ volumes: { v: BLOCK }, pods });

function linkOf(world: NodeWorld, pod: string): string {
  return `${NODE_ROOT}/pods/${world.uidOf(pod)}/volumeDevices/kubernetes.io~csi/pv-v`;
}

describe("raw block volumes", () => {
  test("scenario 81: staged, published, bound below the plugin, linked for the pod, held by a loop device; two events", async () => {
    const world = await mapped();
    const uid = world.uidOf("web");

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    const published = `${DEVICES}/publish/pv-v/${uid}`;
    expect(await world.mountPoints()).toEqual([published, `${DEVICES}/pv-v/dev/${uid}`]);
    expect(await world.machine.files.readLink(linkOf(world, "web"))).toBe(published);
    expect(await world.machine.devices.loopOf(`${DEVICES}/pv-v/dev/${uid}`)).toBe("/dev/loop0");
    expect(world.told().sort()).toEqual([
      `SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "pv-v" globalMapPath "${DEVICES}/pv-v/dev"`,
      `SuccessfulMountVolume MapVolume.MapPodDevice succeeded for volume "pv-v" volumeMapPath "${NODE_ROOT}/pods/${uid}/volumeDevices/kubernetes.io~csi"`,
    ]);
    expect([...world.manager.getMountedVolumesForPod(uid).values()]).toMatchObject([
      { mode: "Block", path: linkOf(world, "web") },
    ]);
  });

  test("scenario 82: a second pod stages nothing; the last of two lets everything go", async () => {
    const world = await mapped({ a: POD, b: POD });
    const early = world.takeCalls();
    expect(early[0]).toBe("stage v");
    expect(early.slice(1).sort()).toEqual(["publish v a", "publish v b"]);

    await world.removePod("a");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v a"]);
    expect(await world.machine.files.readLink(linkOf(world, "b"))).toBeDefined();

    await world.removePod("b");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v b", "unstage v"]);
    expect(await world.mountPoints()).toEqual([]);
    expect(await world.machine.devices.loopOf(`${DEVICES}/pv-v/dev/x`)).toBeUndefined();
    expect((await world.machine.files.list(DEVICES))?.map(({ name }) => name)).not.toContain("pv-v");
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 83: published, but no device is there: uncertain, and unpublished when the pod goes", async () => {
    const world = await given({ volumes: { v: BLOCK } });
    world.driver.publishesNothing = true;

    await world.startPod("web", POD);
    await world.runFor(100);
    const uid = world.uidOf("web");
    expect(world.manager.getMountedVolumesForPod(uid).size).toBe(0);
    expect(world.manager.hasPossiblyMountedVolumesForPod(uid)).toBe(true);
    expect(world.told()[0]).toMatch(/^FailedMapVolume MapVolume\.MapPodDevice failed for volume "pv-v" : /);
    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web", "unpublish v web", "unstage v"]);
  });

  test("scenario 84: a stage that certainly failed leaves no record and no directories", async () => {
    const world = await given({ volumes: { v: BLOCK } });
    world.driver.fail("stage", "INVALID_ARGUMENT", { times: 99 });

    await world.startPod("web", POD);
    await world.settle();

    expect((await world.machine.files.list(DEVICES))?.map(({ name }) => name)).not.toContain("pv-v");
    await world.removePod("web");
    await world.settle();
    expect(world.takeCalls()).toEqual(["stage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 85: after a reboot the old link and the old files are replaced", async () => {
    const world = await mapped();
    await world.stop();
    world.machine.reboot();
    const link = linkOf(world, "web");
    await world.machine.files.removeFile(link);
    await world.machine.files.symlink("/dev/gone", link);
    world.takeCalls();

    world.start();
    await world.settle();

    const published = `${DEVICES}/publish/pv-v/${world.uidOf("web")}`;
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(await world.machine.files.readLink(link)).toBe(published);
    expect((await world.mountPoints()).sort()).toEqual(
      [`${DEVICES}/pv-v/dev/${world.uidOf("web")}`, published].sort(),
    );
  });

  for (const place of ["pv-v/dev", "publish/pv-v"])
    test(`a power loss that brings back the file in ${place} over which a device was bound keeps no volume in use`, async () => {
      const world = await mapped();
      const { files } = world.machine;
      const records = `${NODE_ROOT}/mooring/volumes`;
      const uid = world.uidOf("web");
      const [record] = (await files.list(records)) ?? [];
      const text = (await files.read(`${records}/${record?.name}`)) ?? "";
      await world.removePod("web");
      await world.settle();
      await world.stop();
      // What came last, the removal of the record, is not on the disk, nor the removal of the file; that of the pod is.
      await files.writeDurable(
        `${records}/${record?.name}`,
        JSON.stringify({ ...(JSON.parse(text) as object), pods: [], calls: [] }),
      );
      await files.makeDirectories(`${DEVICES}/${place}`, 0o750);
      await files.makeFile(`${DEVICES}/${place}/${uid}`, 0o640);

      world.start();
      await world.settle();

      expect(world.inUse()).toEqual([]);
      expect((await files.list(DEVICES))?.map(({ name }) => name)).not.toContain("pv-v");
    });

  /** The pod has gone, of its volume neither journal nor record is left, and the removal of its link is not on the disk. */
  async function linkedWithoutRecord() {
    const world = await mapped();
    const uid = world.uidOf("web");
    const link = linkOf(world, "web");
    await world.removePod("web");
    await world.settle();
    await world.stop();
    await world.machine.files.makeDirectories(dirname(link), 0o750);
    await world.machine.files.symlink("/dev/gone", link);
    await world.setInUse(NODE, ["kubernetes.io/csi/csi.example.com^v"]);
    world.takeCalls();
    return { world, uid };
  }

  for (const [what, bringBack] of [
    ["the link of a pod", async () => undefined],
    [
      "it and the file where the driver publishes",
      async ({ machine: { files } }: NodeWorld, uid: string) => {
        await files.makeDirectories(`${DEVICES}/publish/pv-v`, 0o750);
        await files.makeFile(`${DEVICES}/publish/pv-v/${uid}`, 0o640);
      },
    ],
    [
      "it and the directory where the driver stages",
      ({ machine: { files } }: NodeWorld) => files.makeDirectories(`${DEVICES}/staging/pv-v`, 0o750),
    ],
  ] as const)
    test(`a power loss that brings back ${what}, but no record, keeps no volume in use`, async () => {
      const { world, uid } = await linkedWithoutRecord();
      const { files } = world.machine;
      await bringBack(world, uid);

      world.start();
      await world.runFor(1_000);

      expect(world.takeCalls()).toEqual([]);
      expect(world.manager.report().volumes).toEqual([]);
      expect(world.inUse()).toEqual([]);
      expect(await files.list(`${DEVICES}/staging`)).toEqual([]);
      expect(await files.list(`${DEVICES}/publish`)).toEqual([]);
      expect(await files.list(`${NODE_ROOT}/pods`)).toEqual([]);
    });

  /** The pod is still there, and the machine has lost its power and with it the records of its volume. */
  async function rebootedWithoutRecord() {
    const world = await mapped();
    const { files } = world.machine;
    await world.stop();
    world.machine.reboot();
    await files.removeTree(`${NODE_ROOT}/mooring/volumes`);
    await files.removeTree(`${DEVICES}/pv-v`);
    world.takeCalls();
    return world;
  }

  test("a power loss that leaves the link of a pod that stays, but no record: the pod has its device again", async () => {
    const world = await rebootedWithoutRecord();

    world.start();
    await world.runFor(5_000);

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(await world.machine.files.readLink(linkOf(world, "web"))).toBeDefined();
    expect(world.manager.report().volumes.map(({ volume }) => volume)).toEqual([
      "kubernetes.io/csi/csi.example.com^v",
    ]);
  });

  test("a power loss that leaves the link of a pod that stays, but no record: what is mounted there stays", async () => {
    const world = await rebootedWithoutRecord();
    const path = `${DEVICES}/publish/pv-v/${world.uidOf("web")}`;
    await world.machine.mounts.bind(path, path, []);

    world.start();
    await world.runFor(60_000);

    expect(world.takeCalls()).toEqual([]);
    expect(await world.mountPoints()).toEqual([path]);
    expect(world.inUse()).toEqual(["v"]);
  });

  for (const [what, place, make] of [
    [
      "something mounted where the driver publishes",
      "publish/pv-v/u9",
      async ({ machine: { files, mounts } }: NodeWorld, path: string) => {
        await files.makeFile(path, 0o640);
        await mounts.bind(path, path, []);
      },
    ],
    [
      "a link where the driver publishes",
      "publish/pv-v/u9",
      ({ machine: { files } }: NodeWorld, path: string) => files.symlink("/dev/sdb", path),
    ],
    [
      "a file that holds a byte where the driver stages",
      "staging/pv-v/state",
      ({ machine: { files } }: NodeWorld, path: string) => files.writeFile(path, new Uint8Array(1), 0o640),
    ],
    [
      "a volume bound for another pod",
      "pv-v/dev/u9",
      async ({ machine: { files, mounts } }: NodeWorld, path: string) => {
        await files.makeFile(path, 0o640);
        await mounts.bind(path, path, []);
      },
    ],
  ] as const)
    test(`without a record, ${what} may be in use: it stays, and so does what was in use`, async () => {
      const { world } = await linkedWithoutRecord();
      const path = `${DEVICES}/${place}`;
      await world.machine.files.makeDirectories(dirname(path), 0o750);
      await make(world, path);
      const before = await world.mountPoints();

      world.start();
      await world.runFor(5_000);

      expect(world.takeCalls()).toEqual([]);
      expect(await world.machine.files.stat(path)).toBeDefined();
      expect(await world.mountPoints()).toEqual(before);
      expect(world.inUse()).toEqual(["v"]);
    });

  test("a restart without a reboot binds nothing twice", async () => {
    const world = await mapped();
    const before = await world.mountPoints();
    await world.stop();

    world.start();
    await world.settle();

    expect(await world.mountPoints()).toEqual(before);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
  });

  test("scenario 86: a staging directory that is gone costs no unstage, and the rest goes", async () => {
    const world = await mapped();
    await world.machine.files.removeTree(`${DEVICES}/staging/pv-v`);
    world.takeCalls();

    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls()).toEqual(["unpublish v web"]);
    expect((await world.machine.files.list(DEVICES))?.map(({ name }) => name)).not.toContain("pv-v");
    expect(world.inUse()).toEqual([]);
  });

  test("after a restart a pod that has gone: unmapped, unpublished, unstaged", async () => {
    const world = await mapped();
    await world.stop();
    await world.removePod("web");
    world.takeCalls();

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(await world.mountPoints()).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("it grows through its device, with its staging path", async () => {
    const world = await mapped();
    await world.setClaimStatus("v", { capacity: { storage: "1Gi" } });
    await world.settle();
    world.takeCalls();

    await world.patchPersistentVolume("v", { spec: { capacity: { storage: "2Gi" } } });
    await world.settle();

    expect(world.takeCalls()).toEqual([`expand v ${2 * 1024 ** 3}`]);
    expect(world.driver.lastExpand).toEqual({
      volumePath: `${DEVICES}/publish/pv-v/${world.uidOf("web")}`,
      stagingTargetPath: `${DEVICES}/staging/pv-v`,
    });
  });
});
