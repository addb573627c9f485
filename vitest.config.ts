import { defineConfig } from "vitest/config";

/**
 * Units and simulations share one module graph a thread: 1,000 units take 2 s that way and 10 to 20 s with
 * a fresh graph a file, and 90 files of simulations spend 6 s on imports instead of 51. End-to-end tests
 * keep their own, so that none sees another's modules.
 */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/*.test.ts"],
          exclude: ["src/**/*.sim.test.ts"],
          setupFiles: ["test/setup.ts"],
          pool: "threads",
          isolate: false,
          maxWorkers: 2,
          // What reads all sources takes 2 s, and was seen to take 7 beside other work on a slow machine.
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: "sim",
          include: ["src/**/*.sim.test.ts"],
          setupFiles: ["test/setup.ts"],
          pool: "threads",
          isolate: false,
          maxWorkers: 2,
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: "bench",
          include: ["test/bench/*.test.ts"],
          pool: "forks",
          testTimeout: 60_000,
        },
      },
      {
        test: {
          name: "long",
          include: ["test/long/**/*.test.ts"],
          pool: "forks",
          maxWorkers: 2,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          pool: "forks",
          // They wait for leases, deadlines and other processes half of their time.
          maxWorkers: 2,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
