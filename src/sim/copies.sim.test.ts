import { describe, expect, test } from "vitest";
import type { Act } from "./act.ts";
import type { Plan } from "./plan.ts";
import { runSeed } from "./run.ts";
import type { TraceLine } from "./trace.ts";

/** Snapshots and clones in a whole cluster, by either driver. */

const at = (seconds: number, act: Act) => ({ atMs: seconds * 1_000, act });
const COPY = { mode: "ReadWriteOnce", node: undefined, late: false } as const;

const app = (storageClass: string, block: boolean) =>
  at(1, { kind: "add-app", app: "app0", mode: "ReadWriteOnce", storageClass, block, node: "node-1" });

const run = (plan: Plan, loop: boolean) => runSeed(1, { loop, durationMs: 90_000, plan });

const starts = (lines: readonly TraceLine[]) =>
  lines.flatMap(({ what }) => /^starts (app\d)-0 with (?:vol-|d\d)/.exec(what)?.[1] ?? []);

describe.each([{ storageClass: "san" }, { storageClass: "loop" }])(
  "copies of $storageClass",
  ({ storageClass }) => {
    const loop = storageClass === "loop";

    for (const block of [false, true])
      test(`${block ? "without" : "with"} a filesystem begin with what their source had, and nothing is left`, async () => {
        const { violations, lines } = await run(
          [
            app(storageClass, block),
            at(20, { kind: "snapshot", app: "app0", snapshot: "snap0" }),
            at(30, { kind: "restore", snapshot: "snap0", app: "app1", ...COPY }),
            at(30, { kind: "clone", of: "app0", app: "app2", ...COPY, late: true }),
            at(50, { kind: "clone", of: "app1", app: "app3", ...COPY }),
          ],
          loop,
        );

        expect(violations).toEqual([]);
        expect(new Set(starts(lines))).toEqual(new Set(["app0", "app1", "app2", "app3"]));
      });

    test("are made although the snapshot is deleted and its app removed meanwhile", async () => {
      const { violations, lines } = await run(
        [
          app(storageClass, false),
          at(20, { kind: "snapshot", app: "app0", snapshot: "snap0" }),
          at(22, { kind: "restore", snapshot: "snap0", app: "app1", ...COPY }),
          at(40, { kind: "delete-snapshot", snapshot: "snap0" }),
          at(41, { kind: "remove-app", app: "app0" }),
        ],
        loop,
      );

      expect(violations).toEqual([]);
      expect(starts(lines)).toContain("app1");
    });
  },
);
