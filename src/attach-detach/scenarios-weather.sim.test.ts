import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { given, type AttachDetachWorld } from "../sim/attach-detach-world.ts";
import { DRIVER } from "../sim/cluster-objects.ts";
import { NO_FAULTS, type NetworkFaults } from "../sim/faulty-transport.ts";
import { forSeeds, inProportion } from "../sim/seeds.ts";

/**
 * Pods that come, go and move, nodes that die, a driver that is slow and fails, a network that loses things and a
 * controller that is killed, all at once and by chance. Nothing of it may cost data, and when it is over everything
 * must be where it belongs.
 */

const NODES = ["n1", "n2", "n3"];
const VOLUMES = { a: {}, b: {}, c: {}, shared: { modes: ["ReadWriteMany"] } };
const LABELS = Object.keys(VOLUMES);
const STEPS = 30;
/** Above the longest back-off, of 122 s, and a wait of two minutes for the driver after it. */
const CALM_MS = 10 * 60_000;

function drawWeather(random: Random): NetworkFaults {
  const often = (most: number) => (chance(random, 0.5) ? random.float() * most : 0);
  return {
    ...NO_FAULTS,
    unreachable: often(0.2),
    lostAnswer: often(0.2),
    tooMany: often(0.2),
    serverError: often(0.2),
    cut: often(0.1),
    repeated: often(0.2),
    swapped: often(0.2),
    expiredInStream: often(0.05),
    latencyMsMax: 1 + random.float() * 200,
  };
}

/** Who is where, as this test remembers it. */
class Drama {
  readonly pods = new Map<string, { label: string; node: string }>();
  readonly dead = new Set<string>();
  #created = 0;
  readonly #world: AttachDetachWorld;
  readonly #random: Random;

  constructor(world: AttachDetachWorld, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  async step(): Promise<void> {
    const random = this.#random;
    const [name] = this.pods.size > 0 ? [pick(random, [...this.pods.keys()])] : [];
    const node = pick(random, NODES);
    const roll = random.float();
    if (roll < 0.3) await this.start(pick(random, LABELS), node);
    else if (roll < 0.52 && name !== undefined) await this.end(name);
    else if (roll < 0.64 && name !== undefined) await this.#replace(name);
    else if (roll < 0.7) await this.#world.restartController();
    else if (roll < 0.76) await this.#toggle(node);
    else if (roll < 0.92) await this.#doubt(node);
    else this.#annoyDriver();
    await this.#world.advance(chance(random, 0.2) ? random.int(400_000) : random.int(4_000));
  }

  async start(label: string, node: string): Promise<void> {
    const name = `pod-${this.#created++}`;
    this.pods.set(name, { label, node });
    await this.#world.createPod(name, { on: node, uses: [label] });
  }

  /** Gracefully, or by force; on a dead node nobody would finish a graceful one. */
  async end(name: string): Promise<void> {
    const { node = "" } = this.pods.get(name) ?? {};
    this.pods.delete(name);
    if (this.dead.has(node) || chance(this.#random, 0.3)) await this.#world.removePod(name);
    else await this.#world.deletePod(name);
  }

  /** As a StatefulSet does: the next one comes before everybody has seen that the last one went. */
  async #replace(name: string): Promise<void> {
    const { label = "", node = "" } = this.pods.get(name) ?? {};
    this.pods.delete(name);
    await this.#world.removePod(name);
    await this.#world.advance(this.#random.int(300));
    await this.start(label, node);
  }

  /** Whoever watches nodes lost sight of one, though its kubelet goes on. */
  async #doubt(node: string): Promise<void> {
    if (!this.dead.has(node))
      await this.#world.setReady(node, pick(this.#random, ["True", "Unknown", "Unknown"]));
  }

  async #toggle(node: string): Promise<void> {
    if (this.dead.delete(node)) {
      await this.#world.rebootNode(node);
      return;
    }
    this.dead.add(node);
    this.#world.stopKubelet(node);
    await this.#world.setReady(node, "Unknown");
  }

  #annoyDriver(): void {
    const attacher = this.#world.attacherOf(DRIVER);
    attacher.delayMs = chance(this.#random, 0.5) ? 0 : this.#random.int(180_000);
    if (chance(this.#random, 0.3)) attacher.failAttaches(this.#random.int(4), "no");
    if (chance(this.#random, 0.3)) attacher.failDetaches(this.#random.int(4), "busy");
  }

  /** The storm is over: nodes run, the driver works, and of the pods that fight for a volume one is left. */
  async calm(): Promise<void> {
    for (const node of this.dead) await this.#world.rebootNode(node);
    this.dead.clear();
    for (const node of NODES) await this.#world.setReady(node, "True");
    const attacher = this.#world.attacherOf(DRIVER);
    attacher.delayMs = 0;
    attacher.failAttaches(0, "");
    attacher.failDetaches(0, "");
    const taken = new Set<string>();
    for (const [name, { label }] of [...this.pods])
      if (label !== "shared" && taken.has(label)) await this.end(name);
      else taken.add(label);
  }
}

function expectInPlace(world: AttachDetachWorld, drama: Drama): void {
  for (const [name] of drama.pods) expect(world.pod(name)?.status?.phase, name).toBe("Running");
  for (const node of NODES) {
    const wanted = new Set(
      [...drama.pods.values()].filter((pod) => pod.node === node).map(({ label }) => label),
    );
    expect(world.volumesAttached(node), `volumesAttached of ${node}`).toEqual([...wanted].sort());
    const having = LABELS.filter((label) => world.attachmentOf(label, node) !== undefined);
    expect(having, `attachments of ${node}`).toEqual([...wanted].sort());
    const published = LABELS.filter((label) =>
      world.storages.publishedOn(world.labels.uniqueName(label)).includes(node),
    );
    expect(published, `published on ${node}`).toEqual([...wanted].sort());
  }
}

test("no storm costs data, and afterwards everything is where it belongs", async () => {
  let moves = 0;
  await forSeeds(15, async (random, seed) => {
    let weather = drawWeather(random.fork("weather"));
    const world = await given({
      seed,
      nodes: NODES,
      volumes: VOLUMES,
      kubelets: { statusLatencyMs: random.int(2) * 3_000, terminateMs: random.int(3) * 10_000 },
      network: () => weather,
    });
    const drama = new Drama(world, random.fork("drama"));
    for (let step = 0; step < STEPS; step++) {
      await drama.step();
      expect(world.violations).toEqual([]);
    }

    weather = NO_FAULTS;
    await drama.calm();
    await world.advance(CALM_MS);

    expect(world.violations).toEqual([]);
    expectInPlace(world, drama);
    moves += world.storages.calls.length;
  });
  // Without attaches and detaches nothing would be proved.
  expect(moves).toBeGreaterThan(inProportion(100));
});
