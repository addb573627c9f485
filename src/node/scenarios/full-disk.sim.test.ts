import { expect, test } from "vitest";
import { createHostCallFaults } from "../../sim/host-call-faults.ts";
import { given, NODE_ROOT, type NodePodSketch } from "../../sim/node-world.ts";

/** What takes space: each of these fails on a full disk, and nothing that lets go may need one of them. */
const TAKES_SPACE = new Set([
  "files.writeDurable",
  "files.writeFile",
  "files.makeDirectories",
  "files.makeFile",
  "files.symlink",
]);
const BLOCK = {
  source: { volumeMode: "Block", csi: { driver: "csi.example.com", volumeHandle: "b" } },
} as const;
const POD: NodePodSketch = {
  uses: ["v", "b"],
  inline: [
    { name: "scratch", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
  ],
  containers: [
    {
      name: "app",
      image: "x",
      volumeMounts: ["v", "scratch", "memory"].map((name) => ({ name, mountPath: `/${name}` })),
      volumeDevices: [{ name: "b", devicePath: "/dev/xvda" }],
    },
  ],
};

for (const restarted of [false, true])
  test(`on a full disk everything is let go all the same${restarted ? ", also by an agent that started there" : ""}`, async () => {
    const world = await given({ volumes: { v: {}, b: BLOCK }, builtIn: true, started: false });
    const disk = { full: false };
    const host = createHostCallFaults(world.machine, world, {
      fault: "ENOSPC",
      fails: (_, name) => disk.full && TAKES_SPACE.has(name),
    });
    world.start({ host });
    for (const name of ["a", "b"]) await world.startPod(name, POD);
    await world.settle();
    for (const name of ["a", "b"])
      expect(world.manager.getMountedVolumesForPod(world.uidOf(name)).size).toBe(4);

    disk.full = true;
    if (restarted) {
      world.abandon();
      world.start({ host });
      await world.settle();
    }
    await world.removePod("a");
    await world.runFor(5_000);
    await world.removePod("b");
    await world.runFor(60_000);

    expect(world.inUse()).toEqual([]);
    expect(await world.mountPoints()).toEqual([]);
    expect((await world.machine.files.list(`${NODE_ROOT}/mooring/volumes`)) ?? []).toEqual([]);
    expect((await world.machine.files.list(`${NODE_ROOT}/pods`)) ?? []).toEqual([]);
    expect(host.met).toBeGreaterThan(0);
  });
