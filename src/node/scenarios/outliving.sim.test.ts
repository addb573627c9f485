import { expect, test } from "vitest";
import { pick, type Random } from "../../base/random.ts";
import { given, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";
import { forSeeds } from "../../sim/seeds.ts";

/**
 * Containers that end when they please, whatever becomes of their pods and of the agent: pods are deleted by force, said to
 * be over, replaced by name, share volumes; agents are killed. At every moment: what a process has is in `volumesInUse`
 * and staged, and what it alone can have got from its pod is published. When the last process has ended, everything goes.
 */

const LABELS = ["a", "b", "c"];
const NAMES = ["web", "db", "job", "cron"];
const TICKS = 30;
/** Three pauses between looks, for the pod, the volume and the directory, with the steps between them. */
const GONE_MS = 60_000;

interface Container {
  readonly pid: number;
  readonly label: string;
  /** Where its volume was published for its pod. */
  readonly target: string;
  /** Whether its control group says whose it is. */
  readonly named: boolean;
}

class Storm {
  readonly world: NodeWorld;
  readonly random: Random;
  readonly pods = new Map<string, readonly string[]>();
  readonly containers: Container[] = [];

  constructor(world: NodeWorld, random: Random) {
    this.world = world;
    this.random = random;
  }

  async act(): Promise<void> {
    const { world, random } = this;
    const act = random.int(10);
    const [name] = pickSome(random, [...this.pods.keys()]);
    if (act < 3) await this.addPod();
    else if (act < 6) await this.startContainer();
    else if (act === 6) this.endContainer();
    else if (act === 7) {
      world.abandon();
      world.start();
    } else if (name !== undefined) await this.dropPod(name);
  }

  async addPod(): Promise<void> {
    const [name] = pickSome(
      this.random,
      NAMES.filter((one) => !this.pods.has(one)),
    );
    if (name === undefined) return;
    const uses = LABELS.filter(() => this.random.float() < 0.5);
    // One that is over still stands in the way of its name.
    if (this.world.uidOf(name) !== "") await this.world.removePod(name);
    await this.world.startPod(name, { uses });
    this.pods.set(name, uses);
  }

  async startContainer(): Promise<void> {
    const { world, random } = this;
    const [name] = pickSome(random, [...this.pods.keys()]);
    const [label] = pickSome(random, this.pods.get(name ?? "") ?? []);
    if (name === undefined || label === undefined) return;
    const uid = world.uidOf(name);
    // As whoever starts containers does: not before the volume is there.
    if (!world.manager.getMountedVolumesForPod(uid).has(label)) return;
    const target = `${NODE_ROOT}/pods/${uid}/volumes/kubernetes.io~csi/pv-${label}/mount`;
    const named = random.float() < 0.5;
    const pid = world.machine.startProcess({ binds: [target], ...(named && { podUid: uid }) });
    this.containers.push({ pid, label, target, named });
  }

  endContainer(): void {
    const [container] = this.containers.splice(this.random.int(Math.max(1, this.containers.length)), 1);
    if (container) this.world.machine.endProcess(container.pid);
  }

  async dropPod(name: string): Promise<void> {
    this.pods.delete(name);
    if (this.random.float() < 0.3)
      await this.world.setPodStatus(name, { phase: pick(this.random, ["Failed", "Succeeded"]) });
    else await this.world.removePod(name);
  }

  async check(): Promise<void> {
    const { world } = this;
    const mounted = await world.mountPoints();
    const inUse = world.inUse();
    for (const { label, target, named, pid } of this.containers) {
      const who = `process ${pid} has ${label}`;
      expect(inUse, who).toContain(label);
      const sources = (await world.machine.mounts.table())
        .below(`${NODE_ROOT}/plugins`)
        .map(({ source }) => source);
      expect(sources, `${who}, which is not staged`).toContain(label);
      if (named) expect(mounted, `${who}, which is not published`).toContain(target);
    }
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      await this.world.runFor(Math.min(left, 100));
      await this.check();
    }
  }
}

function pickSome<T>(random: Random, all: readonly T[]): readonly T[] {
  return all.length === 0 ? [] : [pick(random, all)];
}

test("whoever outlives whom: what a process has stays in use, staged and published; when all have ended, nothing is left", async () => {
  let outlived = 0;
  await forSeeds(5, async (random, seed) => {
    const world = await given({ seed, volumes: Object.fromEntries(LABELS.map((label) => [label, {}])) });
    const storm = new Storm(world, random.fork("storm"));

    for (let tick = 0; tick < TICKS; tick++) {
      await storm.act();
      await storm.pass(100 + random.int(2_000));
    }
    for (const name of [...storm.pods.keys()]) await storm.dropPod(name);
    await storm.pass(5_000);
    outlived += storm.containers.length;

    while (storm.containers.length > 0) {
      storm.endContainer();
      await storm.pass(1_000);
    }
    await world.runFor(GONE_MS);
    expect(await world.mountPoints()).toEqual([]);
    expect(world.inUse()).toEqual([]);
    world.abandon();
  });
  expect(outlived).toBeGreaterThan(5);
}, 120_000);
