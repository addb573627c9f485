import { describe, expect, test } from "vitest";
import { csiDrivers } from "../../kube/api/csi-driver.ts";
import { nodes } from "../../kube/api/node.ts";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { DRIVER, volumeObject } from "../../sim/cluster-objects.ts";
import { createFaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE, NODE_ROOT, type NodePodSketch, type NodeWorld } from "../../sim/node-world.ts";

/**
 * A pod has volume `v`; then the objects that led to it are replaced by others of the same name, changed or deleted. What
 * the pod has stays until it goes, in use, with nothing mounted over it; what it did not have yet follows the new ones.
 */

type Mode = "Filesystem" | "Block";

const CLAIM = { namespace: "default", name: "claim-v" };

interface Damage {
  readonly does: (world: NodeWorld, mode: Mode) => Promise<void>;
  /** Whether the pod is told, where it has the volume: objects that a mount does not hang on are no contradiction. */
  readonly contradicts: boolean;
}

async function replacePersistentVolume(world: NodeWorld, mode: Mode, volumeHandle: string): Promise<void> {
  const claim = world.read(persistentVolumeClaims, CLAIM);
  await world.deletePersistentVolume("v");
  const source = { volumeMode: mode, csi: { driver: DRIVER, volumeHandle } };
  const volume = volumeObject("pv-v", { source, modes: ["ReadWriteOnce"], claim });
  await world.client.create(persistentVolumes, volume);
}

async function replaceClaim(world: NodeWorld, volumeName: string): Promise<void> {
  await world.deleteClaim("v");
  await world.createClaim("default/claim-v", { volumeName, bound: true });
}

async function bindTo(world: NodeWorld, volumeName: string): Promise<void> {
  const { uid = "" } = world.read(persistentVolumeClaims, CLAIM)?.metadata ?? {};
  const value = { spec: { claimRef: { kind: "PersistentVolumeClaim", ...CLAIM, uid } } };
  await world.client.patch(persistentVolumes, { name: volumeName }, { type: "merge", value });
}

async function recreateNode(world: NodeWorld): Promise<void> {
  const before = world.read(nodes, { name: NODE });
  const attached = world.volumesAttached(NODE);
  await world.deleteNode(NODE);
  await world.createNode(NODE, {
    attached,
    ...(before?.metadata.labels && { labels: before.metadata.labels }),
  });
}

const DAMAGES: Readonly<Record<string, Damage>> = {
  "claim replaced, to another volume": {
    contradicts: true,
    async does(world) {
      await replaceClaim(world, "pv-w");
      await bindTo(world, "pv-w");
    },
  },
  "claim and PersistentVolume replaced, another disk": {
    contradicts: true,
    async does(world, mode) {
      await replaceClaim(world, "pv-v");
      await replacePersistentVolume(world, mode, "w");
    },
  },
  "claim replaced, same PersistentVolume": {
    contradicts: true,
    async does(world) {
      await replaceClaim(world, "pv-v");
      await bindTo(world, "pv-v");
    },
  },
  "PersistentVolume replaced, another disk": {
    contradicts: true,
    does: (world, mode) => replacePersistentVolume(world, mode, "w"),
  },
  "PersistentVolume replaced, same disk": {
    contradicts: true,
    does: (world, mode) => replacePersistentVolume(world, mode, "v"),
  },
  "PersistentVolume deleted": { contradicts: true, does: (world) => world.deletePersistentVolume("v") },
  "claim deleted": { contradicts: true, does: (world) => world.deleteClaim("v") },
  "claim lost": {
    contradicts: true,
    does: (world) => world.setClaimStatus("v", { phase: "Lost" }),
  },
  "PersistentVolume bound to another claim": {
    contradicts: true,
    does: (world) =>
      world.patchPersistentVolume("v", {
        spec: { claimRef: { kind: "PersistentVolumeClaim", namespace: "default", name: "x", uid: "x" } },
      }),
  },
  "claim ending": {
    contradicts: false,
    does: async (world) => world.client.delete(persistentVolumeClaims, CLAIM),
  },
  "CSIDriver replaced": {
    contradicts: false,
    does: (world) => world.setDriver(DRIVER, { attachRequired: true }),
  },
  "CSIDriver deleted": {
    contradicts: false,
    does: (world) => world.client.delete(csiDrivers, { name: DRIVER }),
  },
  "node replaced": { contradicts: false, does: recreateNode },
};

const MOMENTS = ["not registered", "staging", "publishing", "published", "ending"] as const;
const RESTARTS = ["none", "stopped", "killed", "killed, no journal"] as const;

interface Case {
  readonly damage: string;
  readonly moment: (typeof MOMENTS)[number];
  readonly restart: (typeof RESTARTS)[number];
  readonly mode: Mode;
}

function allCases(): readonly Case[] {
  return Object.keys(DAMAGES).flatMap((damage) =>
    MOMENTS.flatMap((moment) =>
      RESTARTS.flatMap((restart) =>
        (["Filesystem", "Block"] as const)
          .map((mode) => ({ damage, moment, restart, mode }))
          .filter((one) => !isUnknowable(one)),
      ),
    ),
  );
}

/** Of a device that is being published nothing is on disk yet that names the pod, except the journal. */
function isUnknowable({ moment, restart, mode }: Case): boolean {
  return mode === "Block" && moment === "publishing" && restart === "killed, no journal";
}

function sketchOf(mode: Mode) {
  const source = (volumeHandle: string) => ({ volumeMode: mode, csi: { driver: DRIVER, volumeHandle } });
  const uses = ["v"];
  const volumeDevices = [{ name: "v", devicePath: "/dev/xvda" }];
  const pod: NodePodSketch =
    mode === "Block" ? { uses, containers: [{ name: "app", image: "x", volumeDevices }] } : { uses };
  return { volumes: { v: { source: source("v") }, w: { source: source("w") } }, pods: { web: pod } };
}

/** What of which volume is below the pod's directories and where devices of block volumes are published. */
const RUNNING = {
  phase: "Running",
  containerStatuses: [
    {
      ...{ name: "app", image: "x", imageID: "x", ready: true, restartCount: 0 },
      state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
    },
  ],
};

async function mountedFor(world: NodeWorld, uid: string): Promise<readonly string[]> {
  const table = (await world.machine.mounts.table()).below(NODE_ROOT);
  const disk = ({ source, root }: { source: string; root: string }) =>
    root.startsWith("/dev/") ? root.slice("/dev/".length) : source;
  return table.filter(({ path }) => path.includes(uid)).map((point) => `${disk(point)} ${point.path}`);
}

class Scene {
  readonly world: NodeWorld;
  readonly one: Case;
  readonly uid: string;
  #host: ReturnType<typeof createFaultyNodeHost>;

  constructor(world: NodeWorld, one: Case) {
    this.world = world;
    this.one = one;
    this.uid = world.uidOf("web");
    this.#host = createFaultyNodeHost(world.machine, { clock: world.clock });
  }

  /** To the moment of the damage. */
  async begin(): Promise<void> {
    const { world, one } = this;
    world.start({ host: this.#host });
    if (one.moment === "staging") world.driver.delay("stage", 3_000);
    if (one.moment === "publishing") world.driver.delay("publish", 3_000);
    if (one.moment !== "not registered") world.registerDriver();
    await world.settle();
    if (one.moment === "published" || one.moment === "ending") await world.setPodStatus("web", RUNNING);
    if (one.moment === "ending") await world.deletePod("web");
  }

  async restart(): Promise<void> {
    const { world, one } = this;
    if (one.restart === "none") return;
    if (one.restart === "stopped") await world.stop();
    else {
      this.#host.dieAt(0);
      world.abandon();
    }
    if (one.restart === "killed, no journal")
      await world.machine.files.removeTree(`${NODE_ROOT}/mooring/volumes`);
    world.start();
    world.registerDriver();
  }
}

async function play(one: Case): Promise<void> {
  const world = await given({
    ...sketchOf(one.mode),
    driver: { attachRequired: true },
    started: false,
    registered: false,
  });
  const scene = new Scene(world, one);
  await scene.begin();
  const had = (await mountedFor(world, scene.uid)).length > 0;
  const begun = had || one.moment === "publishing";
  world.takeCalls();
  const damage = DAMAGES[one.damage];

  await damage?.does(world, one.mode);
  await world.settle();
  await scene.restart();
  for (let second = 0; second < 8; second++) {
    await world.runFor(1_000);
    const mounted = await mountedFor(world, scene.uid);
    const disks = new Set(mounted.map((line) => line.split(" ")[0]));
    expect(disks.size, `two volumes in one pod: ${mounted.join("; ")}`).toBeLessThan(2);
    if (!begun) continue;
    expect(
      [...disks].filter((disk) => disk !== "v"),
      "another volume in the pod",
    ).toEqual([]);
    if (had) expect([...disks], "the pod lost its volume").toEqual(["v"]);
    expect(world.inUse(), "not in use").toContain("v");
  }
  if (begun) {
    const taken = world.takeCalls().filter((call) => call.startsWith("un") && call.split(" ")[1] === "v");
    expect(taken, "taken from a live pod").toEqual([]);
    const told = world.told().filter((line) => line.startsWith("VolumeReplaced "));
    // Without the journal nobody knows uids any more: the same disk is then the same volume.
    const sameDisk = one.damage.includes("same") && one.restart === "killed, no journal";
    if (!sameDisk) expect(told.length > 0, `told: ${told.join("; ")}`).toBe(damage?.contradicts);
    if (damage?.contradicts && !sameDisk)
      expect(JSON.stringify(world.manager.report())).toContain("until the pod ends");
  }

  await world.removePod("web");
  await world.runFor(300_000);
  expect(await world.mountPoints(), "left over").toEqual([]);
  expect(world.inUse()).toEqual([]);
  const calls = world.takeCalls();
  if (begun) expect(calls.filter((call) => call === "unstage v")).toHaveLength(1);
  world.abandon();
}

describe("a running pod whose claim was replaced by one of the same name", () => {
  test("keeps what it has, is told, and lets the old one go in the end", async () => {
    const world = await given({ volumes: { v: {}, w: {} }, pods: { web: { uses: ["v"] } } });
    const uid = world.uidOf("web");
    world.takeCalls();

    await DAMAGES["claim replaced, to another volume"]?.does(world, "Filesystem");
    await world.runFor(5_000);

    expect(world.takeCalls()).toEqual([]);
    expect(world.inUse()).toEqual(["v"]);
    expect((await mountedFor(world, uid)).map((line) => line.split(" ")[0])).toEqual(["v"]);
    expect(world.told()).toContain(
      'VolumeReplaced volume "v" of the pod stays kubernetes.io/csi/csi.example.com^v until the pod ends, but its claim leads to kubernetes.io/csi/csi.example.com^w (PersistentVolume pv-w) now',
    );
    expect(world.manager.report().volumes[0]?.pods[0]?.waitingFor).toMatchObject({
      reason: "volume-replaced",
    });

    await world.removePod("web");
    await world.settle();
    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v"]);
    expect(world.inUse()).toEqual([]);
  });

  test("the next pod gets the new one", async () => {
    const world = await given({ volumes: { v: {}, w: {} }, pods: { web: { uses: ["v"] } } });
    await DAMAGES["claim replaced, to another volume"]?.does(world, "Filesystem");
    world.takeCalls();

    await world.startPod("next", { uses: ["v"] });
    await world.settle();

    expect(world.takeCalls()).toEqual(["stage w", "publish w next"]);
    expect(world.inUse()).toEqual(["v", "w"]);
  });

  test("a raw block volume of the same PersistentVolume's name waits until the old one is gone", async () => {
    const sketch = sketchOf("Block");
    const world = await given(sketch);
    await DAMAGES["PersistentVolume replaced, another disk"]?.does(world, "Block");
    await world.settle();
    world.takeCalls();

    await world.startPod("next", sketch.pods.web);
    await world.settle();
    expect(world.takeCalls()).toEqual([]);
    await world.removePod("web");
    await world.runFor(1_000);

    expect(world.takeCalls()).toEqual(["unpublish v web", "unstage v", "stage w", "publish w next"]);
  });
});

/** One in seven by default, which meets each kind of damage, moment and restart; all of them with MOORING_EVERY_STEP. */
const STRIDE = process.env["MOORING_EVERY_STEP"] ? 1 : 7;

test("whatever is replaced, whenever, across restarts: a live pod keeps what it has, nothing is mounted over it, the old one is let go in the end", async () => {
  const cases = allCases().filter((_, index) => index % STRIDE === 0);
  const failures: string[] = [];
  for (const one of cases)
    await play(one).catch((error: unknown) =>
      failures.push(`${JSON.stringify(one)}: ${String(error).slice(0, 300)}`),
    );

  process.stdout.write(`replaced objects: ${cases.length} of ${allCases().length} cases\n`);
  expect(failures).toEqual([]);
}, 600_000);
