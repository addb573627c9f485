import { expect, test } from "vitest";
import { chance, pick, type Random } from "../../base/random.ts";
import type { SimCore } from "../../sim/core.ts";
import { NO_FAULTS, type NetworkFaults } from "../../sim/faulty-transport.ts";
import { startCore } from "../../sim/harness.ts";
import { ignoresStreamingLists, refusesStreamingLists } from "../../sim/other-servers.ts";
import { forSeeds, inProportion } from "../../sim/seeds.ts";
import { configMaps, type ConfigMap } from "../api/config-map.ts";
import { createInformer, type Informer } from "./informer.ts";
import { keyOf, type ObjectKey } from "../object.ts";
import type { HistoryGap } from "./reflector.ts";
import type { Delta } from "./store.ts";

const NAMES = ["a", "b", "c", "d", "e", "f"];

/** Every kind of trouble, each seed with its own mix. */
function drawFaults(random: Random): NetworkFaults {
  const often = (most: number) => (chance(random, 0.5) ? random.float() * most : 0);
  return {
    unreachable: often(0.3),
    lostRequest: often(0.1),
    lostAnswer: often(0.2),
    tooMany: often(0.3),
    serverError: often(0.3),
    expired: often(0.2),
    cut: often(0.2),
    silent: often(0.05),
    repeated: often(0.3),
    swapped: often(0.3),
    expiredInStream: often(0.1),
    garbled: often(0.1),
    latencyMsMax: 1 + random.float() * 200,
  };
}

/** What a handler was told, checked as it comes: added, updated*, deleted for every key, versions only forward. */
class Listener {
  readonly told = new Map<ObjectKey, ConfigMap>();
  readonly seen: string[] = [];

  handle(delta: Delta<ConfigMap>): void {
    const { key, object } = delta;
    const known = this.told.get(key);
    if (delta.kind === "added") expect(known, `${key} added twice`).toBeUndefined();
    else expect(known, `${key} ${delta.kind} without being there`).toBeDefined();
    if (delta.kind === "updated") expect(delta.old).toBe(known);
    if (delta.kind === "deleted") this.told.delete(key);
    else this.told.set(key, object);
    // A tombstone repeats the last version known; everything else tells a version of its own.
    if (delta.kind !== "deleted" || !delta.tombstone)
      this.seen.push(`${key}@${object.metadata.resourceVersion ?? ""}`);
  }
}

/** Everybody else in the cluster: creates, updates and deletes at random, and keeps the books. */
function createWriter({ server, client, scheduler, objects, random: parent }: SimCore) {
  const random = parent.fork("writer");
  const writes: { key: string; id: string; atMs: number }[] = [];

  async function writeOnce(): Promise<void> {
    const name = pick(random, NAMES);
    const ref = { namespace: "default", name };
    const known = server.store.get({ resource: "configmaps", ...ref });
    const data = { value: String(random.int(1_000_000)), text: "ß€𝄞".repeat(random.int(5)) };
    if (known === undefined) {
      await client.create(configMaps, { metadata: ref, data });
    } else if (chance(random, 0.3)) {
      await client.delete(configMaps, ref);
    } else {
      await client.patch(configMaps, ref, { type: "merge", value: { data } });
    }
    writes.push({ key: name, id: `default/${name}@${server.store.revision}`, atMs: scheduler.nowMs });
  }

  async function run(ms: number): Promise<void> {
    const untilMs = scheduler.nowMs + ms;
    while (scheduler.nowMs < untilMs) {
      for (let burst = 1 + random.int(4); burst > 0; burst--) {
        const writing = writeOnce();
        await scheduler.runFor(0);
        await writing;
      }
      // Compaction now and then: whoever is behind has to list again.
      if (chance(random, 0.05)) await server.store.compact(server.store.revision);
      await scheduler.runFor(random.int(2_000));
    }
  }

  return { writes, run, state: () => objects.list(configMaps) };
}

test("after the faults stop the cache equals the server, and nothing in between was lost or told twice", async () => {
  let relistsInAll = 0;
  let deltasInAll = 0;
  await forSeeds(200, async (random, seed) => {
    const behaves = pick(random, [undefined, refusesStreamingLists, ignoresStreamingLists]);
    const core = await startCore(seed, { behaves });
    const { scheduler } = core;
    const cluster = createWriter(core);
    const weather = drawFaults(random);
    const relistedAtMs: number[] = [];
    const gaps: HistoryGap[] = [];
    const listener = new Listener();
    let informer!: Informer<ConfigMap>;
    const ends: unknown[] = [];
    const process = core.add(
      "informer",
      ({ cluster: { client }, clock, random }, signal) => {
        const metrics = countRelists(() => relistedAtMs.push(scheduler.nowMs));
        informer = createInformer({ client, clock, random, metrics }, { resource: configMaps });
        informer.addHandler((delta) => listener.handle(delta));
        informer.onGap((gap) => void gaps.push(gap));
        const running = informer.run(signal);
        informer.addHandler(() => {
          throw new Error("a handler that always fails must not matter");
        });
        return running;
      },
      { rate: 1, restarts: false, onEnd: (error) => ends.push(error) },
    );
    process.setFaults(weather);
    process.start();

    await cluster.run(60_000 + random.int(120_000));
    process.setFaults(NO_FAULTS);
    // Longest way back: 90 s until silence is noticed, 30 s backoff, 60 s a page.
    await scheduler.runFor(300_000);

    const state = new Map(cluster.state().map((object) => [keyOf(object), object]));
    expect(informer.hasSynced()).toBe(true);
    expect(versions(informer.objects())).toEqual(versions(state.values()));
    expect(versions(listener.told.values())).toEqual(versions(state.values()));
    for (const object of informer.objects()) expect(object.data).toEqual(state.get(keyOf(object))?.data);
    expect(new Set(listener.seen).size, "told twice").toBe(listener.seen.length);
    expectNothingLost(cluster.writes, listener.seen, { relistedAtMs, gaps, swaps: weather.swapped > 0 });
    expect(gaps.length).toBe(Math.max(0, relistedAtMs.length - 1));
    relistsInAll += relistedAtMs.length;
    deltasInAll += listener.seen.length;
    process.stop();
    await scheduler.runFor(1);
    expect(ends).toEqual([undefined]);
    core.end();
  });

  // The property means something only if the faults did bite: more than the one list each informer starts with.
  expect(relistsInAll).toBeGreaterThan(inProportion(800));
  expect(deltasInAll).toBeGreaterThan(inProportion(10_000));
});

/**
 * A write that was never told must have been overtaken: by the first state; by a later one, whose gap names it; or, where
 * the network swaps neighbours, by its neighbour about the same object.
 */
function expectNothingLost(
  writes: readonly { key: string; id: string; atMs: number }[],
  seen: readonly string[],
  {
    relistedAtMs,
    gaps,
    swaps,
  }: { relistedAtMs: readonly number[]; gaps: readonly HistoryGap[]; swaps: boolean },
): void {
  const firstListAtMs = relistedAtMs[0] ?? -Infinity;
  const told = new Set(seen);
  const isInGap = (id: string) => {
    const version = Number(id.slice(id.indexOf("@") + 1));
    return gaps.some(
      ({ fromVersion, toVersion }) => Number(fromVersion) < version && version <= Number(toVersion),
    );
  };
  const lost = writes.filter(({ key, id, atMs }, index) => {
    if (told.has(id) || atMs <= firstListAtMs || isInGap(id)) return false;
    return !(swaps && (writes[index - 1]?.key === key || writes[index + 1]?.key === key));
  });
  expect(lost).toEqual([]);
}

function versions(objects: Iterable<ConfigMap>): string[] {
  return [...objects].map((object) => `${keyOf(object)}@${object.metadata.resourceVersion ?? ""}`).sort();
}

function countRelists(onRelist: () => void) {
  const silent = {
    inc: () => undefined,
    set: () => undefined,
    reset: () => undefined,
    observe: () => undefined,
  };
  return {
    counter: ({ name }: { name: string }) =>
      name === "mooring_informer_relists_total" ? { inc: onRelist } : silent,
    gauge: () => silent,
    histogram: () => silent,
  };
}
