import { describe, expect, test } from "vitest";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";

/** An agent that has mounted `v` for `web` and is gone; its machine is as it left it. */
async function stopped(
  pods = { web: { uses: ["v"] } } as Record<string, { uses: string[] }>,
): Promise<NodeWorld> {
  const world = await given({ pods });
  await world.stop();
  world.takeCalls();
  return world;
}

describe("after a restart", () => {
  test("scenario 87: a pod that runs: staged and published again, never taken down", async () => {
    const world = await stopped();

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    expect(world.inUse()).toEqual(["v"]);
  });

  test("scenario 88: a pod deleted meanwhile: unpublished, unstaged, files gone, and only then off the list", async () => {
    const world = await stopped();
    await world.removePod("web");

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(world.inUse()).toEqual([]);
    expect(await world.mountPoints()).toEqual([]);
    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toEqual([]);
  });

  test("scenario 88: without its node object nothing is taken down", async () => {
    const world = await stopped();
    await world.removePod("web");
    await world.deleteNode("n1");

    world.start();
    await world.runFor(10_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.manager.statesHaveBeenSynced()).toBe(false);
  });

  test("scenario 89: two dead pods, one volume: two unpublishes, one unstage", async () => {
    const world = await stopped({ a: { uses: ["v"] }, b: { uses: ["v"] } });
    await world.removePod("a");
    await world.removePod("b");

    world.start();
    await world.settle();

    const calls = world.takeCalls();
    expect([...calls].sort()).toEqual(["unpublish v a", "unpublish v b", "unstage v"]);
    expect(calls.at(-1)).toBe("unstage v");
  });

  test("scenario 92: set-up of what was found fails for good: it is still taken down later", async () => {
    const world = await stopped();
    world.driver.fail("stage", "INTERNAL", { times: 99 });

    world.start();
    await world.runFor(2_000);
    expect(world.inUse()).toEqual(["v"]);
    await world.removePod("web");
    await world.settle();

    expect(world.takeCalls().filter((call) => call.startsWith("un"))).toEqual([
      "unpublish v web",
      "unstage v",
    ]);
    expect(await world.mountPoints()).toEqual([]);
  });

  test("scenario 95: staged, no pod directory, no journal: found, in use until it is unstaged", async () => {
    const world = await stopped();
    await world.removePod("web");
    await world.machine.mounts.unmount(
      (await world.mountPoints()).find((path) => path.includes("/pods/")) ?? "",
    );
    await world.machine.files.removeTree(`${NODE_ROOT}/pods`);
    await world.machine.files.removeTree(`${NODE_ROOT}/mooring`);
    world.driver.fail("unstage", "INTERNAL");

    world.start();
    await world.settle();
    expect(world.inUse()).toEqual(["v"]);
    await world.runFor(1_000);

    expect(world.takeCalls()).toEqual(["unstage v", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 96: a truncated record of the plugin is recovered from the journal", async () => {
    const world = await stopped();
    const uid = world.uidOf("web");
    await world.removePod("web");
    const record = `${NODE_ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-v/vol_data.json`;
    await world.machine.files.writeDurable(record, "{", 0o600);

    world.start();
    await world.runFor(2_000);

    expect(await world.mountPoints()).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("scenario 97: no pods directory: it starts empty and is synced", async () => {
    const world = await given({});

    expect(world.manager.statesHaveBeenSynced()).toBe(true);
    expect(world.manager.report().volumes).toEqual([]);
  });

  test("until states are synced the list is left as it was found", async () => {
    const world = await given({ volumes: { other: {} }, started: false });
    await world.setInUse("n1", ["other"]);

    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    host.delay("files.list", { path: `${NODE_ROOT}/pods`, ms: 5_000 });
    world.start({ host });
    await world.runFor(4_000);
    expect(world.manager.statesHaveBeenSynced()).toBe(false);
    expect(world.inUse()).toEqual(["other"]);
    await world.runFor(2_000);

    // Nothing on disk speaks for it, so once everything was read it goes.
    expect(world.manager.statesHaveBeenSynced()).toBe(true);
    expect(world.inUse()).toEqual([]);
  });

  test("FIX 14: what nobody can make sense of keeps what the list said before", async () => {
    const world = await given({ volumes: { other: {} }, started: false });
    await world.setInUse("n1", ["other"]);
    const path = `${NODE_ROOT}/pods/u9/volumes/example.com~gone/x`;
    await world.machine.files.makeDirectories(path, 0o750);
    await world.machine.files.writeFile(`${path}/data`, Buffer.from("x"), 0o600);

    world.start();
    await world.runFor(3_600_000);

    expect(world.inUse()).toEqual(["other"]);
    expect(world.manager.report().strays).toHaveLength(1);
  });
});

describe("what a crash leaves", () => {
  const csi = `${NODE_ROOT}/plugins/kubernetes.io/csi`;
  const hash = "a".repeat(64);
  const record = (volume: object) => `${JSON.stringify(volume)}\n`;
  const PUBLISHED = { driverName: "csi.example.com", volumeHandle: "v", specVolID: "pv-v" };

  test("FIX 12: a mount below the plugins that nothing accounts for is left, and keeps what the list said", async () => {
    const world = await given({ volumes: { other: {} }, started: false });
    await world.setInUse("n1", ["other"]);
    const path = `${csi}/gone.example.com/${hash}/globalmount`;
    await world.machine.files.makeDirectories(path, 0o750);
    await world.machine.mounts.mount({ source: "x", target: path, type: "tmpfs", options: [] });

    world.start();
    await world.runFor(10_000);
    expect(world.inUse()).toEqual(["other"]);
    expect(world.manager.report().strays).toEqual([path]);

    await world.machine.mounts.unmount(path);
    await world.runFor(400_000);
    expect(world.manager.report().strays).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("a driver's own mounts below its own directory are none of ours", async () => {
    const world = await given({ started: false });
    const path = `${NODE_ROOT}/plugins/csi.example.com/cache`;
    await world.machine.files.makeDirectories(path, 0o750);
    await world.machine.mounts.mount({ source: "x", target: path, type: "tmpfs", options: [] });

    world.start();
    await world.settle();

    expect(world.manager.report().strays).toEqual([]);
  });

  test("what is mounted for a known volume, staged or mapped, is no stray", async () => {
    const world = await given({
      volumes: {
        b: { source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "b" } } },
      },
      pods: {
        web: { uses: ["v"] },
        raw: {
          uses: ["b"],
          containers: [{ name: "app", image: "x", volumeDevices: [{ name: "b", devicePath: "/dev/x" }] }],
        },
      },
    });
    await world.stop();

    world.start();
    await world.settle();

    expect(world.manager.report().strays).toEqual([]);
  });

  test("directories made for a stage that was never asked for go at the start, with their drafts", async () => {
    const world = await given({ started: false });
    const { files } = world.machine;
    const directory = `${csi}/csi.example.com/${hash}`;
    await files.makeDirectories(`${directory}/globalmount`, 0o750);
    await files.writeDurable(`${directory}/vol_data.json.draft`, "{", 0o600);
    await files.makeDirectories(`${csi}/csi.example.com/${"b".repeat(64)}`, 0o750);
    await files.makeDirectories(`${csi}/csi.example.com/mine`, 0o750);

    world.start();
    await world.settle();

    expect((await files.list(`${csi}/csi.example.com`))?.map(({ name }) => name)).toEqual(["mine"]);
    expect(world.takeCalls()).toEqual([]);
  });

  test("a staging directory with somebody's data in it stays, record or not", async () => {
    const world = await given({ started: false });
    const data = `${csi}/csi.example.com/${hash}/globalmount/data`;
    await world.machine.files.makeDirectories(`${data}/deep`, 0o750);

    world.start();
    await world.settle();

    expect(await world.machine.files.list(data)).toHaveLength(1);
  });

  test("a draft beside the record of a pod that is gone keeps nothing", async () => {
    const world = await stopped();
    const directory = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~csi/pv-v`;
    await world.machine.files.writeDurable(`${directory}/vol_data.json.draft`, "{", 0o600);
    await world.removePod("web");

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toEqual([]);
  });

  test("FIX 28: nothing but a record, found while running: unpublished once more, then it goes", async () => {
    const world = await given({});
    const directory = `${NODE_ROOT}/pods/u9/volumes/kubernetes.io~csi/pv-v`;
    await world.machine.files.makeDirectories(directory, 0o750);
    await world.machine.files.writeDurable(`${directory}/vol_data.json`, record(PUBLISHED), 0o600);
    expect(await world.manager.listOrphans()).toEqual([{ podUid: "u9", kind: "adopt", why: "" }]);

    await world.runFor(400_000);

    expect(world.takeCalls()).toEqual(["unpublish v u9"]);
    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });

  test("FIX 28: any other file beside the record keeps it, and no driver is asked", async () => {
    const world = await given({});
    const directory = `${NODE_ROOT}/pods/u9/volumes/kubernetes.io~csi/pv-v`;
    await world.machine.files.makeDirectories(directory, 0o750);
    await world.machine.files.writeDurable(`${directory}/vol_data.json`, record(PUBLISHED), 0o600);
    await world.machine.files.writeDurable(`${directory}/notes`, "x", 0o600);

    await world.runFor(400_000);

    expect(world.takeCalls()).toEqual([]);
    expect(await world.machine.files.list(directory)).toHaveLength(2);
  });
});

describe("directories without a name", () => {
  const nodeSelectorTerms = [{ matchExpressions: [{ key: "elsewhere", operator: "DoesNotExist" }] }];
  const LOCAL = {
    source: {
      local: { path: "/data" },
      volumeMode: "Filesystem",
      nodeAffinity: { required: { nodeSelectorTerms } },
    },
  };

  test("scenario 93: a local directory in use across a restart is adopted by its pod, never unmounted", async () => {
    const world = await given({
      builtIn: true,
      volumes: { v: LOCAL },
      started: false,
    });
    await world.machine.files.makeDirectories("/data", 0o755);
    world.start();
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    const path = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~local-volume/pv-v`;
    expect(await world.mountPoints()).toEqual([path]);
    await world.stop();
    await world.machine.files.removeTree(`${NODE_ROOT}/mooring`);
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });

    world.start({ host });
    await world.runFor(10_000);

    expect(host.log.filter((line) => line.includes("nmount") || line.includes("cleanUp"))).toEqual([]);
    expect(await world.mountPoints()).toEqual([path]);
    expect(world.manager.getMountedVolumesForPod(world.uidOf("web")).size).toBe(1);
    expect(world.manager.report().volumes.map(({ volume }) => volume)).toEqual([
      "kubernetes.io/local-volume/pv-v",
    ]);

    await world.removePod("web");
    await world.settle();
    expect(await world.mountPoints()).toEqual([]);
  });

  test("scenario 93: the same of a pod that is gone is taken down by its name alone", async () => {
    const world = await given({
      builtIn: true,
      volumes: { v: LOCAL },
      started: false,
    });
    await world.machine.files.makeDirectories("/data", 0o755);
    world.start();
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    await world.stop();
    await world.machine.files.removeTree(`${NODE_ROOT}/mooring`);
    await world.removePod("web");

    world.start();
    await world.settle();

    expect(await world.mountPoints()).toEqual([]);
    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toEqual([]);
  });

  test("scenario 91: a directory of an unknown plugin counts as failed and is left, whoever wants that name", async () => {
    const world = await stopped();
    const uid = world.uidOf("web");
    const path = `${NODE_ROOT}/pods/${uid}/volumes/example.com~gone/pv-v`;
    await world.machine.files.makeDirectories(path, 0o750);

    world.start();
    await world.settle();

    expect(world.manager.report().strays).toEqual([path]);
    expect(await world.machine.files.list(path)).toEqual([]);
    expect(world.takeCalls()).toEqual(["stage v", "publish v web"]);
  });

  test("scenario 94: an inline CSI volume is known again by its pod, and only unpublished", async () => {
    const world = await given({
      driver: { attachRequired: false, volumeLifecycleModes: ["Persistent", "Ephemeral"] },
      pods: { web: { inline: [{ name: "scratch", csi: { driver: "csi.example.com" } }] } },
    });
    const [publish = ""] = world.takeCalls();
    expect(publish).toMatch(/^publish csi-[0-9a-f]{64} web$/);
    await world.stop();
    await world.machine.files.removeTree(`${NODE_ROOT}/mooring`);
    await world.removePod("web");

    world.start();
    await world.settle();

    expect(world.takeCalls()).toEqual([`un${publish}`]);
    expect(await world.mountPoints()).toEqual([]);
    expect(world.inUse()).toEqual([]);
  });
});

describe("orphans", () => {
  const orphan = (path: string) => `${NODE_ROOT}/pods/u9/${path}`;

  test("scenario 133: only empty directories: removed", async () => {
    const world = await given({ started: false });
    await world.machine.files.makeDirectories(orphan("volumes/kubernetes.io~empty-dir"), 0o750);
    await world.machine.files.makeDirectories(orphan("containers/app"), 0o750);

    world.start();
    await world.settle();

    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toEqual([]);
  });

  test("scenario 133: a mount point below it: untouched", async () => {
    const world = await given({ started: false });
    const path = orphan("containers/app");
    await world.machine.files.makeDirectories(path, 0o750);
    await world.machine.mounts.mount({ source: "tmpfs", target: path, type: "tmpfs", options: [] });

    world.start();
    await world.settle();

    expect(await world.mountPoints()).toEqual([path]);
    expect(await world.manager.listOrphans()).toEqual([
      { podUid: "u9", kind: "keep", why: `${path} is a mount point` },
    ]);
  });

  test("scenario 133: a file inside a volume: it stays, and so does everything else", async () => {
    const world = await given({ started: false });
    await world.machine.files.makeDirectories(orphan("volumes/example.com~gone/x"), 0o750);
    await world.machine.files.writeFile(
      orphan("volumes/example.com~gone/x/data"),
      new Uint8Array([1]),
      0o600,
    );
    await world.machine.files.makeDirectories(orphan("containers/app"), 0o750);

    world.start();
    await world.settle();

    expect(await world.machine.files.readBytes(orphan("volumes/example.com~gone/x/data"))).toBeDefined();
    expect(await world.machine.files.list(orphan("containers"))).toHaveLength(1);
  });

  test("scenario 134: a pod that is known, even terminated, keeps its directory", async () => {
    const world = await given({ pods: { web: {} }, started: false });
    const uid = world.uidOf("web");
    await world.machine.files.makeDirectories(`${NODE_ROOT}/pods/${uid}/containers`, 0o750);
    await world.setPodStatus("web", { phase: "Succeeded" });

    world.start();
    await world.settle();

    expect(await world.machine.files.list(`${NODE_ROOT}/pods`)).toHaveLength(1);
  });
});
