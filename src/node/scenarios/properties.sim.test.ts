import { expect, test } from "vitest";
import { pick, type Random } from "../../base/random.ts";
import type { CsiCode } from "../../csi/errors.ts";
import { volumeAttachments } from "../../kube/api/volume-attachment.ts";
import type { Transport } from "../../kube/transport/transport.ts";
import type { DriverCall } from "../../sim/node-driver.ts";
import { createFaultyNodeHost, type FaultyNodeHost } from "../../sim/node-host-faults.ts";
import { given, NODE, NODE_ROOT, type NodeWorld } from "../../sim/node-world.ts";
import { forSeeds } from "../../sim/seeds.ts";

/**
 * Pods come and go, the driver, the machine and the API server fail, the agent is killed; a controller attaches and
 * detaches by the protocol. At every moment: what is mounted is in `volumesInUse`, nothing is mounted twice, nothing is
 * staged that is not attached. In the end, without faults: exactly what the pods need, and when they are gone, nothing.
 */

const LABELS = ["a", "b", "c", "d"];
const CODES: readonly CsiCode[] = [
  "INTERNAL",
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "ABORTED",
  "INVALID_ARGUMENT",
];
const CALLS: readonly DriverCall[] = ["stage", "unstage", "publish", "unpublish"];
const HOST_CALLS = [
  "files.writeDurable",
  "files.makeDirectories",
  "files.removeDirectory",
  "files.removeFile",
];
const TICKS = 40;

class Storm {
  readonly world: NodeWorld;
  readonly random: Random;
  /** By pod name: what it uses. */
  readonly pods = new Map<string, readonly string[]>();
  /** Off the list, but not off the node yet: the controller looks once more. */
  readonly leaving = new Set<string>();
  readonly attached = new Set<string>();
  readonly violations: string[] = [];
  host: FaultyNodeHost;
  apiFaults = 0;
  #count = 0;

  constructor(world: NodeWorld, random: Random) {
    this.world = world;
    this.random = random;
    this.host = createFaultyNodeHost(world.machine, { clock: world.clock });
  }

  start(): void {
    this.host = createFaultyNodeHost(this.world.machine, { clock: this.world.clock });
    this.world.start({ host: this.host, wrapTransport: (real) => this.#faulty(real) });
  }

  #faulty(real: Transport): Transport {
    const refused = { status: 500, headers: {}, body: "" };
    return {
      ...real,
      request: async (request) => {
        if (this.random.float() >= this.apiFaults) return real.request(request);
        // Half of those that fail were done all the same.
        if (this.random.float() < 0.5) await real.request(request);
        return refused;
      },
      stream: (request) => real.stream(request),
      close: () => real.close(),
    };
  }

  async act(): Promise<void> {
    const { world, random } = this;
    const act = random.int(12);
    if (act < 4 && this.pods.size < 5) await this.addPod();
    else if (act < 7) await this.dropPod();
    else if (act === 7)
      world.driver.fail(pick(random, CALLS), pick(random, CODES), { done: random.float() < 0.5 });
    else if (act === 8) world.driver.delay(pick(random, CALLS), 50 + random.int(1_000));
    else if (act === 9) this.host.fail(pick(random, HOST_CALLS), { times: 1 + random.int(2) });
    else if (act === 10) this.apiFaults = random.float() < 0.5 ? 0.3 : 0;
    else this.crash();
  }

  async addPod(): Promise<void> {
    const uses = LABELS.filter(() => this.random.float() < 0.4);
    const name = `p${this.#count++}`;
    await this.world.startPod(name, { uses });
    this.pods.set(name, uses);
  }

  async dropPod(): Promise<void> {
    const name = [...this.pods.keys()][this.random.int(Math.max(1, this.pods.size))];
    if (name === undefined) return;
    this.pods.delete(name);
    if (this.random.float() < 0.3) await this.world.setPodStatus(name, { phase: "Succeeded" });
    else await this.world.removePod(name);
  }

  crash(): void {
    this.host.dieAt(0);
    this.world.abandon();
    this.start();
  }

  wanted(): Set<string> {
    return new Set([...this.pods.values()].flat());
  }

  /** One look of an attach/detach controller that goes by the protocol. */
  async control(): Promise<void> {
    const { world, attached, leaving } = this;
    const wanted = this.wanted();
    for (const label of LABELS) {
      if (leaving.has(label)) await this.#lookAgain(label, wanted.has(label));
      else if (wanted.has(label) && !attached.has(label)) {
        attached.add(label);
        await world.attach(label);
      } else if (!wanted.has(label) && attached.has(label) && !world.inUse().includes(label)) {
        leaving.add(label);
        await world.setAttached(
          NODE,
          world.volumesAttached(NODE).filter((other) => other !== label),
        );
      }
    }
  }

  async #lookAgain(label: string, isWanted: boolean): Promise<void> {
    const { world, attached, leaving } = this;
    leaving.delete(label);
    if (isWanted || world.inUse().includes(label)) {
      await world.attach(label);
      return;
    }
    attached.delete(label);
    await world.client.delete(volumeAttachments, { name: world.attachmentOf(label) });
  }

  async check(): Promise<void> {
    const { world } = this;
    const table = (await world.machine.mounts.table()).below(NODE_ROOT);
    const inUse = new Set(world.inUse());
    for (const { source, path } of table) {
      if (!inUse.has(source)) this.violations.push(`${path} is mounted, but ${source} is not in use`);
      if (!this.attached.has(source))
        this.violations.push(`${path} is mounted, but ${source} is not attached`);
    }
    const paths = table.map(({ path }) => path);
    if (new Set(paths).size !== paths.length) this.violations.push(`mounted twice: ${paths.join(" ")}`);
    expect(this.violations).toEqual([]);
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      await this.world.runFor(Math.min(left, 50));
      await this.check();
    }
  }
}

async function settled(storm: Storm, random: Random): Promise<void> {
  const { world } = storm;
  storm.apiFaults = 0;
  world.driver.heal();
  storm.crash();
  while (storm.pods.size > 2) await storm.dropPod();
  // Longer than the longest back-off and than a call may be under way, with the controller at work.
  for (let round = 0; round < 30; round++) {
    await storm.control();
    await world.runFor(10_000 + random.int(10));
    await storm.check();
  }
  for (const [name, uses] of storm.pods)
    expect([...world.manager.getMountedVolumesForPod(world.uidOf(name)).keys()].sort(), name).toEqual(
      [...uses].sort(),
    );
  const wanted = [...storm.wanted()].sort();
  expect(world.inUse()).toEqual(wanted);
  expect((await world.mountPoints()).length).toBe(wanted.length + [...storm.pods.values()].flat().length);
}

async function emptied(storm: Storm): Promise<void> {
  const { world } = storm;
  while (storm.pods.size > 0) await storm.dropPod();
  for (let round = 0; round < 3; round++) {
    await world.runFor(10_000);
    await storm.control();
  }
  expect(await world.mountPoints()).toEqual([]);
  expect(world.inUse()).toEqual([]);
  expect((await world.machine.files.list(`${NODE_ROOT}/mooring/volumes`)) ?? []).toEqual([]);
}

test("whatever fails and whoever dies: in use and attached while mounted, mounted once, and it settles", async () => {
  await forSeeds(15, async (random, seed) => {
    const volumes = Object.fromEntries(LABELS.map((label) => [label, {}]));
    const world = await given({ seed, volumes, attached: false, started: false });
    const storm = new Storm(world, random.fork("storm"));
    storm.start();

    for (let tick = 0; tick < TICKS; tick++) {
      await storm.act();
      if (random.float() < 0.7) await storm.control();
      await storm.pass(20 + random.int(400));
    }

    await settled(storm, random);
    await emptied(storm);
    world.abandon();
  });
}, 120_000);
