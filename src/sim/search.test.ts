import { expect, test } from "vitest";
import { NO_COVERAGE } from "./coverage.ts";
import { search, type SeedRunner } from "./search.ts";

/** A runner for which some seeds fail; each takes a second. */
function given(failing: readonly number[], runners: number) {
  let nowMs = 0;
  const ran: number[] = [];
  const runner: SeedRunner = {
    async run(seed) {
      ran.push(seed);
      nowMs += 1_000;
      await Promise.resolve();
      const violation = failing.includes(seed) ? { violation: `writers: of ${seed}` } : {};
      return { seed, hash: String(seed), simulatedMs: 600_000, writes: 1, ...violation };
    },
    finish: async () => ({ coverage: { ...NO_COVERAGE, acts: { kill: 2 } } }),
  };
  return { ran, clock: { now: () => nowMs }, runners: Array.from({ length: runners }, () => runner) };
}

test("every seed is run once, whoever is free", async () => {
  const { ran, ...deps } = given([], 3);

  const result = await search(deps, { firstSeed: 10, seeds: 20 });

  expect(ran).toEqual(Array.from({ length: 20 }, (_, at) => 10 + at));
  expect(result).toMatchObject({ done: 20, failures: [], endedBy: "all seeds", simulatedMs: 12_000_000 });
  expect(result.coverage.acts).toEqual({ kill: 6 });
});

test("branches are told with the number of seeds in which somebody looked for them", async () => {
  const { ran: _, runners, ...deps } = given([], 2);
  const [one, other] = runners as [SeedRunner, SeedRunner];
  const looking: SeedRunner = { ...one, finish: async () => ({ coverage: NO_COVERAGE, branches: {} }) };

  const result = await search({ ...deps, runners: [looking, other] }, { firstSeed: 10, seeds: 20 });

  expect(result).toMatchObject({ done: 20, branchSeeds: 10, branches: {} });
});

test("a failure ends it once the seeds under way have ended, and the lowest is told first", async () => {
  const { ran, ...deps } = given([12, 13], 4);

  const result = await search(deps, { firstSeed: 10, seeds: 20 });

  expect(result.endedBy).toBe("a failure");
  expect(result.failures.map(({ seed }) => seed)).toEqual([12, 13]);
  expect(ran.length).toBeLessThan(10);
});

test("told to, it goes on after a failure", async () => {
  const { ran: _, ...deps } = given([12, 25], 2);

  const result = await search(deps, { firstSeed: 10, seeds: 20, keepGoing: true });

  expect(result).toMatchObject({ done: 20, failed: 2, endedBy: "all seeds" });
});

test("each failure is told when it is found", async () => {
  const { ran, ...deps } = given([12, 15], 1);
  const told: string[] = [];

  await search(deps, {
    ...{ firstSeed: 10, seeds: 20, keepGoing: true },
    onFailure: ({ seed, violation }) => told.push(`${seed} after ${ran.length}: ${violation}`),
  });

  expect(told).toEqual(["12 after 3: writers: of 12", "15 after 6: writers: of 15"]);
});

test("a signal ends it with what was found", async () => {
  const { ran, ...deps } = given([11], 2);
  const stop = new AbortController();

  const result = await search(deps, {
    ...{ firstSeed: 10, seeds: 1_000, keepGoing: true, signal: stop.signal },
    onProgress: ({ done }) => done === 6 && stop.abort(),
  });

  expect(result).toMatchObject({ endedBy: "a signal", failed: 1 });
  expect(ran.length).toBeLessThan(10);
});

test("no seed is begun after its time", async () => {
  const { ran, ...deps } = given([], 2);

  const result = await search(deps, { firstSeed: 0, seeds: 1_000, forMs: 5_000 });

  expect(result.endedBy).toBe("time");
  expect(ran.length).toBeGreaterThanOrEqual(5);
  expect(ran.length).toBeLessThan(8);
});
