import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { noMetrics } from "../../base/metrics.ts";
import { chance, pick, type Random } from "../../base/random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { runWorkers, type Outcome } from "./controller.ts";
import { createWorkQueue } from "./work-queue.ts";

const PER_LANE_MAX = 2;

/** Keys of three lanes, changed at random, looked at by workers that take their time and often fail. */
function createWorld(random: Random) {
  const scheduler = new SimScheduler(random.fork("scheduler"));
  const clock = scheduler.createClock({ rate: 0.99 + 0.02 * random.float() });
  const laneOf = (key: string) => key.slice(0, 1);
  const queue = createWorkQueue<string>(
    { clock, metrics: noMetrics },
    { name: "q", backoff: { initialMs: 100, maxMs: 5_000 }, laneOf, perLaneMax: PER_LANE_MAX },
  );
  const keys = ["a", "b", "c"].flatMap((lane) => [1, 2, 3, 4].map((index) => `${lane}${index}`));
  /** How often each key was changed, and which change its last look that did well had seen. */
  const changes = new Map(keys.map((key) => [key, 0]));
  const settled = new Map(keys.map((key) => [key, 0]));
  const inWork = new Map<string, number>();
  const isFaulty = () => scheduler.nowMs < 60_000;

  async function reconcile(key: string): Promise<Outcome> {
    const seen = changes.get(key)!;
    const busy = [...inWork.keys()].filter((other) => laneOf(other) === laneOf(key)).length;
    if (inWork.has(key)) throw new Error(`two workers have ${key}`);
    if (busy >= PER_LANE_MAX) throw new Error(`${busy + 1} workers in the lane of ${key}`);
    inWork.set(key, scheduler.nowMs);
    await clock.sleep(500 * random.float());
    inWork.delete(key);
    if (isFaulty() && chance(random, 0.3)) return { kind: "retry", error: new Error("no luck") };
    settled.set(key, seen);
    return chance(random, 0.1) ? { kind: "after", ms: 3_000 * random.float() } : { kind: "done" };
  }

  function change(): void {
    const key = pick(random, keys);
    changes.set(key, changes.get(key)! + 1);
    pick(random, [
      () => queue.add(key),
      () => queue.addAfter(key, 2_000 * random.float()),
      () => queue.addAt(key, clock.now() + 50),
    ])();
    if (chance(random, 0.2)) queue.resetBackoff(pick(random, keys));
  }

  return { scheduler, clock, queue, changes, settled, inWork, isFaulty, reconcile, change };
}

test("every change of a key is looked at afterwards, by one worker at a time and within its lane's limit", async () => {
  await forSeeds(300, async (random) => {
    const world = createWorld(random);
    const { scheduler, clock, queue } = world;
    const problems: unknown[] = [];
    const stop = new AbortController();
    const reconcile = async (key: string) => {
      try {
        return await world.reconcile(key);
      } catch (error) {
        problems.push(error);
        throw error;
      }
    };
    const running = runWorkers(
      { queue, clock, log: silentLogger, metrics: noMetrics },
      { workers: 5, reconcile },
      stop.signal,
    );

    while (world.isFaulty()) {
      await scheduler.runFor(400 * random.float());
      world.change();
    }
    // The longest backoff and planned look, and the work itself.
    await scheduler.runFor(5_000 + 3_000 + 10_000);

    expect(problems).toEqual([]);
    expect(world.settled).toEqual(world.changes);
    stop.abort();
    await scheduler.runFor(1_000);
    await running;
    expect(world.inWork.size).toBe(0);
  });
});
