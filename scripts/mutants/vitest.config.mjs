// How a test file is run on changed sources: they come from memory, all others are as they are.
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { root } from "../build.mjs";
import { sourcesOf } from "./apply.mjs";

const changes = JSON.parse(process.env.MOORING_CHANGES);
const sources = new Map(
  [...sourcesOf({ id: "of a test", changes })].map(([file, source]) => [join(root, file), source]),
);

export default defineConfig({
  root,
  plugins: [{ name: "mutant", enforce: "pre", load: (id) => sources.get(id) }],
  test: {
    include: ["src/**/*.test.ts"],
    setupFiles: ["test/setup.ts"],
    pool: "threads",
    maxWorkers: 1,
    testTimeout: 120_000,
  },
});
