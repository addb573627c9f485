import { describe, expect, test } from "vitest";
import type { Volume } from "kubernetes-types/core/v1.js";
import { configMaps } from "../kube/api/config-map.ts";
import { given, NODE_ROOT, type NodeWorld } from "../sim/node-world.ts";
import type { Host } from "./host.ts";

/**
 * A node with much on it, and with much to do at once, in a size that fits into a test run; `npm run bench -- node` does
 * the same with 500 pods, 1,000 mounts and real processes.
 */
const FULL = 80;
const HEALTHY = 20;
const READERS = 40;

/** Named so that pods and volumes of one test do not contain each other's names. */
const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => `${prefix}${String(n).padStart(3, "0")}x`);

const podsOf = (labels: readonly string[]) =>
  Object.fromEntries(labels.map((label) => [`p${label}`, { uses: [label] }]));

/** The machine, with a count of everything that is asked of its mounts and files. */
function counted({ mounts, files, ...rest }: Host): { host: Host; acts: () => number } {
  let acts = 0;
  const count = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(target, name) {
        const found: unknown = Reflect.get(target, name);
        if (typeof found !== "function") return found;
        return (...args: unknown[]): unknown => (acts++, Reflect.apply(found, target, args));
      },
    });
  return { host: { ...rest, mounts: count(mounts), files: count(files) }, acts: () => acts };
}

/** What one more pod, and its end, ask of the machine. */
async function actsOfOnePod(world: NodeWorld, acts: () => number): Promise<number> {
  await world.createVolume("extra");
  await world.attach("extra");
  const before = acts();
  await world.startPod("one-more", { uses: ["extra"] });
  await world.settle();
  await world.removePod("one-more");
  await world.settle();
  return acts() - before;
}

describe("a node full of pods with a volume each", () => {
  test("each is staged and published once; one more costs what it costs on an empty node; after a restart a new pod goes first", async () => {
    const empty = await given({ started: false });
    const alone = counted(empty.machine);
    empty.start({ host: alone.host });
    await empty.settle();
    const labels = names("v", FULL);
    const world = await given({ pods: podsOf(labels), started: false });
    const busy = counted(world.machine);

    world.start({ host: busy.host });
    await world.runFor(5_000);

    const calls = world.takeCalls();
    expect([...calls].sort()).toEqual(labels.flatMap((v) => [`publish ${v} p${v}`, `stage ${v}`]).sort());
    expect(world.driver.overlaps).toEqual([]);
    expect(world.inUse()).toEqual(labels);
    expect(await world.mountPoints()).toHaveLength(2 * FULL);

    // Less by one: the first volume of a node makes the directory of the journal.
    const one = await actsOfOnePod(empty, alone.acts);
    expect(await actsOfOnePod(world, busy.acts)).toBe(one - 1);
    world.takeCalls();

    world.abandon();
    await world.createVolume("new");
    await world.attach("new");
    await world.startPod("newcomer", { uses: ["new"] });
    // In a simulation a step takes no time unless it is told to.
    world.driver.delay("stage", 50, { times: 2 * FULL });
    world.start({ host: busy.host });
    const served = () => world.driver.calls.some((call) => call.startsWith("publish new"));
    await world.scheduler.runUntilTrue(served, { withinMs: 10_000 });
    const before = world.takeCalls().filter((call) => call.startsWith("publish v"));
    await world.runFor(10_000);

    // Some of the old ones were made sure of meanwhile, eight at a time; all at once it would have been every one.
    expect(before.length).toBeLessThan(FULL / 2);
    const after = world.takeCalls();
    expect(new Set([...before, ...after.filter((call) => call.startsWith("publish v"))]).size).toBe(FULL);
    expect(after.filter((call) => call.startsWith("un"))).toEqual([]);
    expect(world.inUse()).toEqual([...labels, "new"].sort());
    world.abandon();
  });
});

test("volumes beside a call that hangs take as long as without it", async () => {
  const tookMs = async (hangs: boolean) => {
    const labels = names("v", HEALTHY);
    const world = await given({ volumes: { hung: {}, ...Object.fromEntries(labels.map((v) => [v, {}])) } });
    if (hangs) {
      world.driver.delay("stage", 100_000);
      await world.startPod("stuck", { uses: ["hung"] });
      await world.settle();
    }
    const beganMs = world.clock.now();
    for (const [name, sketch] of Object.entries(podsOf(labels))) await world.startPod(name, sketch);
    const published = () =>
      world.driver.calls.filter((call) => call.startsWith("publish v")).length === HEALTHY;
    expect(await world.scheduler.runUntilTrue(published, { withinMs: 60_000 })).toBe(true);
    const endedMs = world.clock.now();
    expect(world.driver.calls).not.toContain("publish hung");
    world.abandon();
    return endedMs - beganMs;
  };

  const alone = await tookMs(false);

  expect(await tookMs(true)).toBe(alone);
});

test("pods whose config maps change while volumes mount: every change arrives, no pod ever sees half of one", async () => {
  const world = await given({ builtIn: true });
  const maps = names("m", 8);
  const data = (version: number) => ({ a: String(version), b: String(version) });
  for (const name of maps)
    await world.client.create(configMaps, { metadata: { name, namespace: "default" }, data: data(0) });
  const readers = names("r", READERS).map((name, n) => ({ name, map: maps[n % maps.length] ?? "" }));
  for (const { name, map } of readers) {
    const conf: Volume = { name: "conf", configMap: { name: map } };
    await world.startPod(name, { inline: [conf] });
  }
  await world.settle();
  const place = (name: string) =>
    `${NODE_ROOT}/pods/${world.uidOf(name)}/volumes/kubernetes.io~configmap/conf`;
  const look = async (name: string) => {
    const version = await world.machine.files.readLink(`${place(name)}/..data`);
    const [a, b] = [`${place(name)}/${version ?? ""}/a`, `${place(name)}/${version ?? ""}/b`];
    return { a: await world.machine.files.read(a), b: await world.machine.files.read(b) };
  };
  const labels = names("v", HEALTHY);
  for (const label of labels) await world.createVolume(label);
  for (const label of labels) await world.attach(label);
  let looks = 0;

  for (let version = 1; version <= 10; version++) {
    for (const name of maps) {
      const ref = { name, namespace: "default" };
      await world.client.patch(configMaps, ref, { type: "merge", value: { data: data(version) } });
    }
    for (const label of labels.slice((version - 1) * 2, version * 2))
      await world.startPod(`p${label}`, { uses: [label] });
    for (const { name } of readers.filter((_, n) => n % 4 === version % 4)) {
      await world.runFor(1);
      const { a, b } = await look(name);
      // Gone from under the reader: a newer one took its place.
      if (a === undefined || b === undefined) continue;
      expect(a, `a torn set in ${name}`).toBe(b);
      looks++;
    }
  }
  await world.settle();

  expect(looks).toBeGreaterThan(READERS);
  for (const { name } of readers) expect(await look(name), name).toEqual(data(10));
  expect(world.driver.calls.filter((call) => call.startsWith("publish"))).toHaveLength(HEALTHY);
  world.abandon();
});
