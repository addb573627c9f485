import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { NO_FAULTS, type NetworkFaults } from "../sim/faulty-transport.ts";
import { runController } from "../sim/members.ts";
import { forSeeds } from "../sim/seeds.ts";
import type { Supervisor } from "../sim/supervisor.ts";
import { FORCE_AFTER_MS } from "./options.ts";

/**
 * Whole clusters under bad weather: pods come, move and vanish, attachers are slow or fail, nodes die, the controllers'
 * network loses requests and answers, controllers are killed and frozen while two of them contend for the Lease.
 * The storage behind it refuses nothing, so what would have cost data is seen.
 */

const NODES = ["n1", "n2", "n3"];
/** The last one may be on several nodes. */
const VOLUMES = ["v1", "v2", "v3", "shared"];
const DRIVER = "csi.example.com";

const STORM: NetworkFaults = {
  ...NO_FAULTS,
  unreachable: 0.05,
  lostRequest: 0.02,
  lostAnswer: 0.08,
  tooMany: 0.02,
  serverError: 0.05,
  cut: 0.02,
  silent: 0.002,
  repeated: 0.05,
  expiredInStream: 0.01,
  latencyMsMax: 400,
};

/**
 * Writes of ours that a server carries out long after we gave them up. Nine seconds: a leader that was killed is replaced
 * no sooner than eleven after its last write, and of what it had on the wire its successor can know nothing.
 */
const LATE: NetworkFaults = { ...STORM, lostAnswer: 0.02, late: 0.12, lateMsMax: 9_000 };

interface Weather {
  readonly faults: NetworkFaults;
  /** Whether others make VolumeAttachments too. */
  readonly strangers?: boolean;
}

/** `mooring controller` as it comes. */
const REPLICA = { forceAfterMs: FORCE_AFTER_MS, onProcess: () => undefined };

class Storm {
  readonly world: AttachDetachWorld;
  readonly #strangers: boolean;
  readonly #random: Random;
  #faults: NetworkFaults;
  #replicas: Supervisor[] = [];
  #failure: unknown;
  #born = 0;
  readonly #dead = new Set<string>();
  /** Pods by name: where they are and what they use. */
  readonly pods = new Map<string, { on: string; uses: string }>();
  /** What somebody else made, by name: nobody but they may touch it. */
  readonly #foreign = new Map<string, string>();
  /** Pods whose graceful deletion a kubelet may not have finished, and the nodes they are on. */
  readonly #leaving = new Map<string, string>();

  constructor(world: AttachDetachWorld, { faults, strangers = false }: Weather) {
    this.world = world;
    this.#strangers = strangers;
    this.#faults = faults;
    this.#random = world.random.fork("storm");
    world.attacherOf(DRIVER).guarded = strangers;
    this.#replace(0);
    this.#replace(1);
  }

  #replace(index: number): void {
    this.#replicas[index]?.kill();
    const replica = this.world.add(
      `replica-${this.#born++}`,
      (context, signal) => runController(context, REPLICA, signal),
      { restarts: false, network: () => this.#faults, onEnd: (error) => (this.#failure ??= error) },
    );
    this.#replicas[index] = replica;
    replica.start();
  }

  /** One thing happens. */
  async blow(): Promise<void> {
    const random = this.#random;
    switch (random.int(this.#strangers ? 15 : 12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return this.#createPod();
      case 4:
      case 5:
        return this.#endSomePod((name) => this.world.deletePod(name));
      case 6:
        return this.#endSomePod((name) => this.world.removePod(name));
      case 7:
        this.#replace(random.int(2));
        return;
      case 8:
        this.#replicas[random.int(2)]?.freezeFor(random.int(40_000));
        return;
      case 9:
        this.world.attacherOf(DRIVER).delayMs = random.int(5_000);
        return;
      case 10:
        if (chance(random, 0.5)) this.world.attacherOf(DRIVER).failAttaches(1 + random.int(3), "no");
        else this.world.attacherOf(DRIVER).failDetaches(1 + random.int(3), "busy");
        return;
      case 11:
        if (chance(random, 0.3)) await this.#killNode();
        return;
      case 12:
      case 13:
        return this.#makeForeign();
      case 14:
        return this.#removeForeign();
    }
  }

  /** Somebody attaches a volume by hand, under a name of their own. */
  async #makeForeign(): Promise<void> {
    const name = `by-hand-${this.#random.int(1e9)}`;
    const source = { persistentVolumeName: `pv-${pick(this.#random, VOLUMES.slice(0, 3))}` };
    const spec = { attacher: DRIVER, nodeName: pick(this.#random, NODES), source };
    const made = await this.world.client.create(volumeAttachments, { metadata: { name }, spec });
    this.#foreign.set(name, made.metadata.uid ?? "");
  }

  async #removeForeign(): Promise<void> {
    if (this.#foreign.size > 0) await this.#deleteForeign(pick(this.#random, [...this.#foreign.keys()]));
  }

  async #deleteForeign(name: string): Promise<void> {
    this.#foreign.delete(name);
    await this.world.client.delete(volumeAttachments, { name });
  }

  /** What somebody else made is there as they made it. */
  expectUntouched(): void {
    for (const [name, uid] of this.#foreign) {
      const metadata = this.world.read(volumeAttachments, { name })?.metadata;
      expect(metadata?.uid, `${name} is still there`).toBe(uid);
      expect(metadata?.deletionTimestamp, `${name} is not being deleted`).toBeUndefined();
    }
  }

  async #createPod(): Promise<void> {
    const name = `pod-${this.pods.size}-${this.#born}-${this.#random.int(1e9)}`;
    const sketch = { on: pick(this.#random, NODES), uses: pick(this.#random, VOLUMES) };
    this.pods.set(name, sketch);
    await this.world.createPod(name, { on: sketch.on, uses: [sketch.uses] });
  }

  async #endSomePod(end: (name: string) => Promise<void>): Promise<void> {
    if (this.pods.size > 0) await this.#endPod(pick(this.#random, [...this.pods.keys()]), end);
  }

  async #endPod(name: string, end: (name: string) => Promise<void>): Promise<void> {
    const on = this.pods.get(name)?.on ?? "";
    this.pods.delete(name);
    this.#leaving.set(name, on);
    // On a dead node nobody finishes a graceful deletion.
    await (this.#dead.has(on) ? this.world.removePod(name) : end(name)).catch(() => undefined);
  }

  async #killNode(): Promise<void> {
    if (this.#dead.size === NODES.length - 1) return;
    const node = pick(
      this.#random,
      NODES.filter((name) => !this.#dead.has(name)),
    );
    this.#dead.add(node);
    this.world.stopKubelet(node);
    await this.world.setReady(node, "Unknown");
    // The pod garbage collector, sooner or later.
    for (const [name, { on }] of [...this.pods])
      if (on === node) await this.#endPod(name, () => this.world.removePod(name));
  }

  /** The weather clears; everything has the time it needs. */
  async calm(): Promise<void> {
    this.#faults = NO_FAULTS;
    this.world.attacherOf(DRIVER).delayMs = 0;
    this.world.attacherOf(DRIVER).failAttaches(0, "");
    this.world.attacherOf(DRIVER).failDetaches(0, "");
    // Of pods that contend for a volume of one node, the first stays: the others would wait for ever.
    const taken = new Map<string, string>();
    for (const [name, { on, uses }] of [...this.pods]) {
      const holder = taken.get(uses) ?? on;
      taken.set(uses, holder);
      if (this.#dead.has(on) || (uses !== "shared" && holder !== on)) {
        this.pods.delete(name);
        await this.world.removePod(name).catch(() => undefined);
      }
    }
    // Whoever made them is done with them; the pods that stay may run anywhere then.
    for (const name of [...this.#foreign.keys()]) await this.#deleteForeign(name);
    // The pod garbage collector: on a dead node nobody else ends them.
    for (const [name, on] of this.#leaving)
      if (this.#dead.has(on)) await this.world.removePod(name).catch(() => undefined);
    // Above the six minutes of a dead node, and the back-offs and time-outs of attachers and controllers.
    await this.world.advance(25 * 60_000);
    if (this.#failure !== undefined) throw this.#failure as Error;
  }

  expectTruth(): void {
    for (const node of NODES) {
      const wanted = [...this.pods.values()].filter(({ on }) => on === node).map(({ uses }) => uses);
      const expected = [...new Set(wanted)].sort();
      expect(this.world.volumesAttached(node), `volumesAttached of ${node}`).toEqual(expected);
      for (const volume of VOLUMES) {
        const published = this.world.storages
          .publishedOn(this.world.labels.uniqueName(volume))
          .includes(node);
        expect(published, `${volume} published on ${node}`).toBe(expected.includes(volume));
      }
    }
    for (const name of this.pods.keys()) expect(this.world.pod(name)?.status?.phase, name).toBe("Running");
  }
}

async function startStorm(seed: number, weather: Weather): Promise<Storm> {
  const world = await given({
    ...{ seed, nodes: NODES, started: false },
    volumes: { v1: {}, v2: {}, v3: {}, shared: { modes: ["ReadWriteMany"] } },
    kubelets: { statusLatencyMs: 200, terminateMs: 500 },
  });
  return new Storm(world, weather);
}

async function survive(seeds: number, weather: Weather): Promise<void> {
  let pods = 0;
  await forSeeds(seeds, async (random, seed) => {
    const storm = await startStorm(seed, weather);
    for (let gust = 0; gust < 25; gust++) {
      await storm.blow();
      await storm.world.advance(random.int(6_000));
      expect(storm.world.violations).toEqual([]);
      storm.expectUntouched();
    }
    pods += storm.pods.size;

    await storm.calm();

    expect(storm.world.violations).toEqual([]);
    storm.expectTruth();
  });
  // A storm that leaves no pod behind proves little.
  expect(pods).toBeGreaterThan(0);
}

test("no weather lets a second writer in, takes a volume from under a live pod, or leaves anything unsettled", () =>
  survive(15, { faults: STORM }));

test("nor does a write that arrives when nobody waits for it any more", () => survive(5, { faults: LATE }));

test("nor do VolumeAttachments that others make and delete as they like, and none of them is touched", () =>
  survive(3, { faults: STORM, strangers: true }));
