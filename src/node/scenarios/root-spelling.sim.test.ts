import { describe, expect, test } from "vitest";
import type { Volume } from "kubernetes-types/core/v1.js";
import { configMaps } from "../../kube/api/config-map.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";
import { spellRoot } from "../root-spelling.ts";

/**
 * A root directory behind a symbolic link: the life of every kind of volume leaves the same mounts as without it, and
 * drivers are told the path that was configured.
 */

const REAL = "/data/node";
const MEMORY: Volume = { name: "ram", emptyDir: { medium: "Memory" } };
const SCRATCH: Volume = { name: "scratch", emptyDir: {} };
const CONF: Volume = { name: "conf", configMap: { name: "conf" } };
const POD = { uses: ["v"], inline: [MEMORY, SCRATCH, CONF] };

/** Which step of `/var/lib/kubelet` is the link, and what it leads to. */
const LINKS = {
  "the last step of the path is a link": { link: NODE_ROOT, to: REAL, real: REAL },
  "a step in the middle is": { link: "/var/lib", to: "/data/lib", real: "/data/lib/kubelet" },
  "a relative link": { link: NODE_ROOT, to: "../../data/node", real: REAL },
  "a link to a link": { link: NODE_ROOT, to: "/first", real: REAL },
} as const;

async function givenWorld(at?: (typeof LINKS)[keyof typeof LINKS]): Promise<NodeWorld> {
  const world = await given({ started: false, builtIn: true, volumes: { v: {} } });
  const { files } = world.machine;
  await world.client.create(configMaps, {
    metadata: { name: "conf", namespace: "default" },
    data: { key: "one" },
  });
  if (at) {
    await files.removeTree("/var/lib");
    await files.makeDirectories(at.real, 0o750);
    if (at.link !== "/var/lib") await files.makeDirectories("/var/lib", 0o755);
    if (at.to === "/first") await files.symlink(REAL, "/first");
    await files.symlink(at.to, at.link);
  } else await files.makeDirectories(NODE_ROOT, 0o750);
  await restart(world);
  return world;
}

async function restart(world: NodeWorld): Promise<void> {
  world.start({ host: await spellRoot(world.machine, NODE_ROOT) });
  await world.settle();
}

/** Every mount below the root, as the kernel has them, with the root and uids taken out. */
async function mountsOf(world: NodeWorld, real: string): Promise<readonly string[]> {
  const { points } = await world.machine.mounts.table();
  return points
    .filter(({ path }) => path.startsWith(`${real}/`))
    .map(({ path, source }) => `${path.slice(real.length)} ${source}`.replace(/[0-9a-f-]{36}/g, "UID"))
    .sort();
}

/** A pod comes, its content changes five times, the agent restarts, the pod goes. */
async function live(world: NodeWorld, real: string): Promise<readonly (readonly string[])[]> {
  const seen: (readonly string[])[] = [];
  await world.startPod("web", POD);
  await world.runFor(2_000);
  seen.push(await mountsOf(world, real));
  for (let version = 0; version < 5; version++) {
    const value = { data: { key: String(version) } };
    await world.client.patch(configMaps, { name: "conf", namespace: "default" }, { type: "merge", value });
    await world.runFor(120_000);
  }
  seen.push(await mountsOf(world, real));
  world.abandon();
  await restart(world);
  await world.runFor(10_000);
  seen.push(await mountsOf(world, real));
  await world.removePod("web");
  await world.runFor(60_000);
  seen.push(await mountsOf(world, real));
  return seen;
}

describe("a root directory behind a link", () => {
  for (const [name, at] of Object.entries(LINKS))
    test(`${name}: every mount is there once, through refreshes and a restart, and gone with the pod`, async () => {
      const plain = await givenWorld();
      const expected = await live(plain, NODE_ROOT);
      expect(expected.map((mounts) => mounts.length)).toEqual([3, 3, 3, 0]);

      const world = await givenWorld(at);

      expect(await live(world, at.real)).toEqual(expected);
      expect(world.takeCalls()).toEqual(plain.takeCalls());
      expect(world.inUse()).toEqual([]);
    });

  test("a device that is mounted elsewhere still is not unstaged", async () => {
    const world = await givenWorld(LINKS["the last step of the path is a link"]);
    await world.startPod("web", { uses: ["v"] });
    await world.settle();
    const target = `${NODE_ROOT}/pods/${world.uidOf("web")}/volumes/kubernetes.io~csi/pv-v/mount`;
    await world.machine.files.makeDirectories("/mnt/debug", 0o755);
    await world.machine.mounts.bind(target, "/mnt/debug", []);
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(60_000);
    expect(world.takeCalls()).toEqual(["unpublish v web"]);
    expect(world.inUse()).toEqual(["v"]);

    await world.machine.mounts.unmount("/mnt/debug");
    await world.runFor(130_000);
    expect(world.takeCalls()).toEqual(["unstage v"]);
  });

  test("a link that leads elsewhere while the agent runs: nothing is mounted and nothing taken down until it leads back", async () => {
    const world = await givenWorld(LINKS["the last step of the path is a link"]);
    const { files } = world.machine;
    await world.startPod("web", POD);
    await world.settle();
    const before = await mountsOf(world, REAL);
    await files.makeDirectories("/data/other", 0o750);
    await files.removeFile(NODE_ROOT);
    await files.symlink("/data/other", NODE_ROOT);
    world.takeCalls();

    await world.removePod("web");
    await world.runFor(60_000);
    expect(await mountsOf(world, REAL)).toEqual(before);
    expect(world.takeCalls()).toEqual([]);
    expect(JSON.stringify(world.manager.report())).toContain("put the link back or restart the agent");

    await files.removeFile(NODE_ROOT);
    await files.symlink(REAL, NODE_ROOT);
    await world.runFor(130_000);
    expect(await mountsOf(world, REAL)).toEqual([]);
  });
});
