import { describe, expect, test } from "vitest";
import type { Act } from "./act.ts";
import type { Plan } from "./plan.ts";
import { runSeed } from "./run.ts";
import type { TraceLine } from "./trace.ts";

/** The loop driver as its processes have it, in a cluster where all machines are on one computer with its pool. */

const at = (seconds: number, act: Act) => ({ atMs: seconds * 1_000, act });
const app = (fields: { readonly mode?: "ReadWriteMany"; readonly block?: boolean } = {}) =>
  at(1, {
    ...({ kind: "add-app", app: "app0", mode: "ReadWriteOnce", storageClass: "loop" } as const),
    ...{ block: false, node: "node-1", ...fields },
  });
const move = (seconds: number, node: string, force = false) =>
  at(seconds, { kind: "delete-pod", app: "app0", force, node });

const run = (plan: Plan) => runSeed(1, { loop: true, durationMs: 60_000, plan });

const starts = (lines: readonly TraceLine[]) =>
  lines.flatMap(({ who, what }) => (/^starts app0-0 with vol-/.test(what) ? [who] : []));

describe("a volume of the loop driver", () => {
  for (const block of [false, true])
    test(`${block ? "without" : "with"} a filesystem is written on one node and read on the next, and nothing is left`, async () => {
      const { violations, lines, writes } = await run([app({ block }), move(20, "node-2")]);

      expect(violations).toEqual([]);
      expect(starts(lines)).toEqual(["node-1", "node-2"]);
      expect(writes).toBeGreaterThan(10);
      expect(lines.filter(({ who, what }) => who === "loop" && what.endsWith("is deleted"))).toHaveLength(1);
    });

  test("moves although each of its driver's processes is killed on the way", async () => {
    const kill = (seconds: number, process: string) => at(seconds, { kind: "kill", process, forMs: 3_000 });
    const { violations, lines } = await run([
      app(),
      ...[kill(1.05, "loop-driver"), kill(4, "node-1-loop"), move(20, "node-2")],
      ...[kill(20.02, "node-1-loop"), kill(23, "loop-driver"), kill(26, "node-2-loop")],
    ]);

    expect(violations).toEqual([]);
    expect(starts(lines)).toEqual(["node-1", "node-2"]);
  });

  test("comes back on a node that was declared out of service while it was off", async () => {
    const { violations, lines } = await run([
      app(),
      at(20, { kind: "power-off", node: "node-1", forMs: 25_000, taint: true }),
    ]);

    expect(violations).toEqual([]);
    expect(starts(lines)).toEqual(["node-1", "node-1"]);
  });
});
