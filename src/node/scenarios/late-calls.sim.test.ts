import { describe, expect, test } from "vitest";
import { pick, type Random } from "../../base/random.ts";
import type { MemoryChannel } from "../../csi/memory-channel.ts";
import type { Channel } from "../../csi/methods.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import { createFaultyNodeHost, type FaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE, NODE_ROOT, type NodeWorld, type NodeWorldSketch } from "../../sim/node-world.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { sha256 } from "../paths.ts";

/**
 * A driver that does not hear of cancellations and does not keep calls of one volume apart: whatever it was asked for it
 * does, however long ago, whether or not somebody still waits for the answer. At no time is something mounted that
 * `volumesInUse` does not name, nor is a call sent whose opposite may be under way.
 */

const MINUTE = 60_000;
const STAGED = `${NODE_ROOT}/plugins/kubernetes.io/csi/csi.example.com/${sha256("v")}/globalmount`;

async function careless(sketch: NodeWorldSketch): Promise<NodeWorld> {
  const world = await given({ ...sketch, started: false });
  world.driver.locks = false;
  return world;
}

/** After every change a driver makes: what is mounted is in use. */
function watchEffects(world: NodeWorld): string[] {
  const violations: string[] = [];
  world.driver.onEffect = async (line) => {
    const table = (await world.machine.mounts.table()).below(NODE_ROOT);
    const inUse = world.inUse();
    for (const { source, path } of table)
      if (!inUse.includes(source)) violations.push(`after ${line}: ${path} is mounted, but not in use`);
  };
  return violations;
}

async function expectNothingLeft(world: NodeWorld): Promise<void> {
  expect(await world.mountPoints()).toEqual([]);
  expect(world.inUse()).toEqual([]);
  expect((await world.machine.files.list(`${NODE_ROOT}/mooring/volumes`)) ?? []).toEqual([]);
}

describe("a pod goes while its volume is staged", () => {
  test("the call is not cancelled: unstaged when it has ended, and in use until then", async () => {
    const world = await careless({ pods: { web: { uses: ["v"] } } });
    const violations = watchEffects(world);
    world.driver.delay("stage", 5_000);
    world.start();
    await world.runFor(1_000);

    await world.removePod("web");
    await world.runFor(3_000);
    expect(world.takeCalls()).toEqual(["stage v"]);
    expect(world.inUse()).toEqual(["v"]);
    await world.runFor(3_000);

    expect(world.takeCalls()).toEqual(["unstage v"]);
    expect([...violations, ...world.driver.overlaps]).toEqual([]);
    await expectNothingLeft(world);
  });

  test("past its deadline: it counts as under way for as long again, and says so", async () => {
    const world = await careless({ pods: { web: { uses: ["v"] } } });
    const violations = watchEffects(world);
    world.driver.delay("stage", 3 * MINUTE);
    world.start();
    await world.runFor(1_000);

    await world.removePod("web");
    await world.runFor(2.5 * MINUTE);
    expect(world.inUse()).toEqual(["v"]);
    expect(world.manager.report().volumes[0]?.waitingFor).toMatchObject({ reason: "call-unanswered" });
    await world.runFor(2 * MINUTE);

    expect(world.takeCalls()).toEqual(["stage v", "unstage v"]);
    expect([...violations, ...world.driver.overlaps]).toEqual([]);
    await expectNothingLeft(world);
  });

  test("past its deadline, and the driver restarts: that ended the call, and nothing is waited for", async () => {
    const world = await careless({ pods: { web: { uses: ["v"] } } });
    let socket: MemoryChannel | undefined;
    const wrapChannel = (real: Channel) => (socket = real as MemoryChannel);
    world.driver.delay("stage", 60 * MINUTE);
    world.start({ wrapChannel });
    await world.runFor(1_000);
    await world.removePod("web");
    await world.runFor(2.1 * MINUTE);
    expect(world.takeCalls()).toEqual(["stage v"]);

    socket?.disconnect();
    socket?.connect();
    await world.runFor(1_000);

    expect(world.takeCalls()).toEqual(["unstage v"]);
    expect(world.inUse()).toEqual([]);
  });
});

test("an unstage past its deadline: a new pod does not get the volume before that is over", async () => {
  const world = await careless({ pods: { web: { uses: ["v"] } } });
  world.start();
  await world.settle();
  world.driver.delay("unstage", 2.5 * MINUTE);
  await world.removePod("web");
  await world.runFor(MINUTE);
  world.takeCalls();

  await world.startPod("next", { uses: ["v"] });
  await world.runFor(1.5 * MINUTE);
  expect(world.takeCalls()).toEqual([]);
  await world.runFor(2 * MINUTE);

  expect(world.takeCalls()).toEqual(["stage v", "publish v next"]);
  expect((await world.mountPoints()).length).toBe(2);
});

test("the process ends while a call runs: it is let end, and the next one has nothing to wait for", async () => {
  const world = await careless({ pods: { web: { uses: ["v"] } } });
  world.driver.delay("stage", 3_000);
  world.start();
  await world.runFor(1_000);

  await world.stop();
  await world.removePod("web");
  world.start();
  await world.settle();

  expect(world.takeCalls()).toEqual(["stage v", "unstage v"]);
  await expectNothingLeft(world);
});

for (const ownDriver of [false, "csi.example.co", "csi.example.com.au"])
  test(`the process is killed while a call runs${ownDriver ? `, and its own driver is ${ownDriver}` : ""}: the next one keeps the volume in use until that is over`, async () => {
    const world = await careless({ pods: { web: { uses: ["v"] } }, ownDriver });
    const violations = watchEffects(world);
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    world.driver.delay("stage", 3 * MINUTE);
    world.start({ host });
    await world.runFor(1_000);

    host.dieAt(0);
    world.abandon();
    await world.removePod("web");
    world.start();
    await world.runFor(3.5 * MINUTE);
    expect(world.inUse()).toEqual(["v"]);
    await world.runFor(MINUTE);

    expect(world.takeCalls()).toEqual(["stage v", "unstage v"]);
    expect(violations).toEqual([]);
    await expectNothingLeft(world);
  });

for (const [call, inUse] of [
  ["stage", []],
  ["publish", []],
  ["unpublish", []],
  ["unstage", []],
] as const)
  test(`the process is killed while its own driver is at a ${call}: that ended with it, and nothing is waited for`, async () => {
    const world = await careless({ pods: { web: { uses: ["v"] } }, ownDriver: true });
    const violations = watchEffects(world);
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    world.driver.delay(call, 3 * MINUTE);
    world.start({ host });
    await world.settle();
    if (call.startsWith("un")) await world.removePod("web");
    await world.runFor(1_000);

    host.dieAt(0);
    world.driver.kill();
    world.abandon();
    if (!call.startsWith("un")) await world.removePod("web");
    world.start();
    await world.runFor(2_000);

    expect(world.inUse()).toEqual(inUse);
    await expectNothingLeft(world);
    expect(violations).toEqual([]);
  });

describe("a pod that waits behind a call that hangs", () => {
  async function behind(call: "unpublish" | "unstage" | "stage" | "publish", { times = 1 } = {}) {
    const world = await careless({ pods: { web: { uses: ["v"] } } });
    if (!call.startsWith("un")) world.driver.delay(call, 10 * MINUTE);
    world.start();
    await world.settle();
    if (call.startsWith("un")) {
      world.driver.delay(call, 10 * MINUTE, { times });
      await world.removePod("web");
    }
    await world.runFor(1_000);
    await world.startPod("next", { uses: ["v"] });
    await world.settle();
    return world;
  }
  const NAMES = {
    unpublish: "volume_unmount (NodeUnpublishVolume of driver csi.example.com)",
    unstage: "unmount_device (NodeUnstageVolume of driver csi.example.com)",
    stage: "mount_device (NodeStageVolume of driver csi.example.com)",
    publish: "volume_mount (NodePublishVolume of driver csi.example.com)",
  };

  for (const call of ["unpublish", "unstage", "stage", "publish"] as const)
    test(`${call}: ${call === "stage" ? "is not told" : "is told"} of it after 30 s: which volume, which call of which driver, for whom, since when`, async () => {
      const world = await behind(call);
      // A stage is for both of them, and slow ones are no failure: how it ends is told.
      const pods = call === "stage" ? 0 : 1;
      const waitOf = () =>
        world.manager
          .report()
          .volumes.flatMap(({ pods }) => pods)
          .find(({ pod }) => pod === "default/next")?.waitingFor;

      const told = () => world.told().filter((line) => line.includes("is not mounted yet"));
      await world.runFor(25_000);
      expect(told()).toEqual([]);
      expect(waitOf()).toMatchObject({ reason: "step-running" });
      expect(waitOf()?.message).toContain(NAMES[call]);

      await world.runFor(6_000);
      expect(told()).toHaveLength(pods);
      if (pods === 0) return;
      const whom = call === "unpublish" || call === "publish" ? " for pod default/web" : "";
      expect(told()[0]).toMatch(/^FailedMount volume "pv-v" is not mounted yet: /);
      expect(told()[0]).toContain(
        `${NAMES[call]} of kubernetes.io/csi/csi.example.com^v${whom} is under way since 20`,
      );

      await world.runFor(60_000);
      expect(told()).toHaveLength(pods);
    });

  test("past its deadline as well, and then the pod gets its volume", async () => {
    const world = await behind("unpublish", { times: 3 });

    await world.runFor(3 * MINUTE);
    const wait = world.manager.report().volumes[0]?.pods.find(({ pod }) => pod === "default/next");
    expect(wait?.waitingFor?.message).toContain("NodeUnpublishVolume of driver csi.example.com");
    await world.runFor(20 * MINUTE);

    expect(world.takeCalls().at(-1)).toBe("publish v next");
  });
});

test("a back-off names the call that failed", async () => {
  const world = await given({ pods: { web: { uses: ["v"] } }, started: false });
  world.driver.fail("stage", "INTERNAL", { times: 9 });
  world.start();
  await world.runFor(5_000);

  const [volume] = world.manager.report().volumes;
  expect(volume?.pods[0]?.waitingFor).toMatchObject({
    reason: "backoff",
    message: expect.stringMatching(
      /^mount_device \(NodeStageVolume of driver csi\.example\.com\) failed: rpc error: code = Internal/,
    ) as string,
  });
});

describe("a step that takes long before it calls the driver", () => {
  /** A disk that takes five minutes for a directory, then a call that ends 1.5 minutes past its deadline. */
  async function slowStep() {
    const world = await careless({ pods: { web: { uses: ["v"] } } });
    const violations = watchEffects(world);
    const host = createFaultyNodeHost(world.machine, { clock: world.clock });
    host.delay("files.makeDirectories", { path: STAGED, ms: 5 * MINUTE });
    world.driver.delay("stage", 3.5 * MINUTE);
    world.start({ host });
    await world.runFor(5 * MINUTE + 10_000);
    expect(world.takeCalls()).toEqual(["stage v"]);
    await world.removePod("web");
    return { world, violations, host };
  }

  test("past its deadline it counts as under way since it was called, not since the step began", async () => {
    const { world, violations } = await slowStep();
    await world.runFor(4.5 * MINUTE);

    expect(world.takeCalls()).toEqual(["unstage v"]);
    expect([...violations, ...world.driver.overlaps]).toEqual([]);
    await expectNothingLeft(world);
  });

  test("the process is killed during the call: the next one knows of it all the same", async () => {
    const { world, violations, host } = await slowStep();
    host.dieAt(0);
    world.abandon();
    world.start();
    await world.runFor(4.5 * MINUTE);

    expect(world.takeCalls()).toEqual(["unstage v"]);
    expect([...violations, ...world.driver.overlaps]).toEqual([]);
    await expectNothingLeft(world);
  });
});

const LABELS = ["a", "b"];

/** Pods come and go and the agent is killed or restarted, while each call takes between nothing and 3.5 minutes. */
class Slowness {
  readonly world: NodeWorld;
  readonly random: Random;
  readonly pods = new Map<string, readonly string[]>();
  readonly attached = new Set<string>();
  host: FaultyNodeHost;
  #count = 0;

  constructor(world: NodeWorld, random: Random) {
    this.world = world;
    this.random = random;
    this.host = createFaultyNodeHost(world.machine, { clock: world.clock });
    world.driver.takesMs = () => pick(random, [0, 0, 500, 20_000, 119_000, 150_000, 210_000]);
  }

  start(): void {
    this.host = createFaultyNodeHost(this.world.machine, { clock: this.world.clock });
    this.world.start({ host: this.host });
  }

  async act(): Promise<void> {
    const { world, random } = this;
    const act = random.int(8);
    if (act < 3 && this.pods.size < 3) {
      const name = `p${this.#count++}`;
      const uses = LABELS.filter(() => random.float() < 0.6);
      await world.startPod(name, { uses });
      this.pods.set(name, uses);
    } else if (act < 6) {
      const [name] = this.pods.keys();
      if (name === undefined) return;
      this.pods.delete(name);
      await world.removePod(name);
    } else if (act === 6) {
      this.host.dieAt(0);
      world.abandon();
      this.start();
    } else {
      await world.stop();
      this.start();
    }
  }

  /** By the protocol: attached what a pod wants, detached what no pod wants and the node does not use. */
  async control(): Promise<void> {
    const { world, attached } = this;
    const wanted = new Set([...this.pods.values()].flat());
    for (const label of LABELS) {
      const inUse = world.inUse().includes(label);
      if (wanted.has(label) && !attached.has(label)) {
        attached.add(label);
        await world.attach(label);
      } else if (!wanted.has(label) && attached.has(label) && !inUse) {
        attached.delete(label);
        await world.setAttached(NODE, [...attached]);
        await world.client.delete(volumeAttachments, { name: world.attachmentOf(label) });
      }
    }
  }
}

/** Stage beside unstage, publish beside unpublish of one pod: whichever comes second undoes what was answered. */
function opposites(overlaps: readonly string[]): readonly string[] {
  return overlaps.filter((line) => {
    const [[call = "", , pod], others] = [line.split(" "), line.split(" beside ")[1]?.split(", ") ?? []];
    return others.some((other) => {
      const [otherCall = "", , otherPod] = other.split(" ");
      const ofDevice = call.endsWith("stage") || otherCall.endsWith("stage");
      return call.startsWith("un") !== otherCall.startsWith("un") && (ofDevice || pod === otherPod);
    });
  });
}

test("whenever a call ends, and whoever still waits: in use while mounted, no opposites side by side, and nothing is left", async () => {
  let calls = 0;
  // Every seed with MOORING_EVERY_STEP: 40 of them take 20 s.
  await forSeeds(process.env["MOORING_EVERY_STEP"] ? 40 : 8, async (random, seed) => {
    const volumes = Object.fromEntries(LABELS.map((label) => [label, {}]));
    const world = await given({ seed, volumes, attached: false, started: false });
    world.driver.locks = false;
    const violations = watchEffects(world);
    const slowness = new Slowness(world, random.fork("slowness"));
    slowness.start();

    for (let tick = 0; tick < 15; tick++) {
      await slowness.act();
      await slowness.control();
      await world.runFor(pick(random, [100, 2_000, 30_000, 130_000]));
      expect([...violations, ...opposites(world.driver.overlaps)]).toEqual([]);
    }
    for (const name of slowness.pods.keys()) await world.removePod(name);
    slowness.pods.clear();
    world.driver.takesMs = () => 0;
    for (let round = 0; round < 10; round++) {
      await world.runFor(2 * MINUTE);
      await slowness.control();
    }

    expect([...violations, ...opposites(world.driver.overlaps)]).toEqual([]);
    await expectNothingLeft(world);
    calls += world.takeCalls().length;
    world.abandon();
  });
  process.stdout.write(`late calls: ${calls} calls of a driver that ignores cancellation\n`);
}, 120_000);

test("an unpublish that is cut off by the stop of the agent: nobody looks for who keeps the volume busy", async () => {
  const world = await careless({ pods: { web: { uses: ["v"] } } });
  const host = createFaultyNodeHost(world.machine, { clock: world.clock });
  world.start({ host });
  await world.settle();
  world.driver.delay("unpublish", 10 * MINUTE);
  await world.removePod("web");
  await world.runFor(5_000);
  expect(world.takeCalls().at(-1)).toBe("unpublish v web");

  // Such a look takes as long as the machine's slowest mount table.
  host.delay("processes.scan", { ms: MINUTE });
  await world.stop();
}, 5_000);
