import { describe, expect, test } from "vitest";
import type { Act } from "./act.ts";
import { runSeed } from "./run.ts";
import type { TraceLine } from "./trace.ts";

/** Nodes that come, go for good and come back as others, and drivers that are replaced by other versions. */

const at = (seconds: number, act: Act) => ({ atMs: seconds * 1_000, act });
const app = (node: string | undefined) =>
  at(1, {
    ...({ kind: "add-app", app: "app0", mode: "ReadWriteOnce", storageClass: "san" } as const),
    ...{ block: false, node },
  });
const move = (seconds: number, node: string | undefined) =>
  at(seconds, { kind: "delete-pod", app: "app0", force: false, node });

const starts = (lines: readonly TraceLine[]) =>
  lines.flatMap(({ who, what }) => (/^starts app0-0 with d/.test(what) ? [who] : []));

const run = (acts: readonly ReturnType<typeof at>[], loop = false) =>
  runSeed(1, { loop, durationMs: 120_000, plan: [app("node-1"), ...acts] });

describe("a node", () => {
  for (const loop of [false, true])
    test(`that joins ${loop ? "a computer of all" : "with a computer of its own"} gets pods with their volumes, and can leave for good`, async () => {
      const { violations, lines } = await run(
        [
          at(10, { kind: "join", node: "node-4" }),
          move(30, "node-4"),
          at(60, { kind: "leave", node: "node-4", forMs: 20_000 }),
          move(70, undefined),
        ],
        loop,
      );

      expect(violations).toEqual([]);
      expect(starts(lines).slice(0, 2)).toEqual(["node-1", "node-4"]);
      expect(starts(lines).at(-1)).not.toBe("node-4");
    });

  for (const deleted of [true, false])
    test(`whose machine is replaced by one with an empty disk, its Node ${deleted ? "deleted" : "kept"}, has its volumes again`, async () => {
      const { violations, lines } = await run([
        at(30, { kind: "reinstall", node: "node-1", deleted, forMs: 15_000 }),
      ]);

      expect(violations).toEqual([]);
      expect(starts(lines)).toEqual(["node-1", "node-1"]);
      expect(lines.some(({ what }) => what === "is replaced by another machine")).toBe(true);
    });
});

test("a pod for a node that left, moved by somebody who did not reach the server, is not left waiting for that node", async () => {
  const { violations, lines } = await run([
    at(30, { kind: "leave", node: "node-1", forMs: 100 }),
    at(80, { kind: "blackout", forMs: 35_000 }),
    move(85, "node-3"),
  ]);

  expect(
    lines.some(({ what }) => what.startsWith("failed: Unreachable: /api/v1/namespaces/default/pods/app0-0")),
  ).toBe(true);
  expect(violations).toEqual([]);
  expect(starts(lines)).toEqual(["node-1", "node-3"]);
});

describe("somebody whose request finds the server again only after everything was healed", () => {
  const powerless: readonly ReturnType<typeof at>[] = [
    at(60, { kind: "blackout", forMs: 300_000 }),
    at(90, {
      ...({ kind: "add-app", app: "app1", mode: "ReadWriteOnce", storageClass: "san" } as const),
      ...{ block: false, node: "node-1" },
    }),
  ];
  const acts: readonly Act[] = [
    { kind: "drain", node: "node-1", forMs: 16_000 },
    { kind: "leave", node: "node-1", forMs: 60_000 },
  ];

  for (const act of acts)
    test(`leaves a cluster that settles: ${act.kind}`, async () => {
      const { violations, lines } = await run([...powerless, at(100, act)]);

      expect(violations).toEqual([]);
      expect(lines.some(({ who, what }) => who === "node-1" && what.startsWith("starts app1-0 with d"))).toBe(
        true,
      );
    });
});

describe("the workload is removed", () => {
  test("only once people have their answers: a snapshot asked for while nothing has power is removed as well", async () => {
    const { violations, lines } = await run([
      at(80, { kind: "blackout", forMs: 300_000 }),
      at(100, { kind: "snapshot", app: "app0", snapshot: "snap0" }),
    ]);

    expect(violations).toEqual([]);
    expect(lines.some(({ what }) => what.startsWith("CreateSnapshot"))).toBe(true);
  });
});

describe("a disk that two nodes have", () => {
  test("before one of them makes a filesystem on it: the other finds that", async () => {
    const { violations, lines } = await runSeed(1, {
      loop: false,
      durationMs: 200_000,
      plan: [
        at(0.5, { kind: "driver-faults", machine: "node-2", rate: 0, slowMs: 20_000, forMs: 60_000 }),
        at(1, {
          ...({ kind: "add-app", app: "app0", mode: "ReadWriteMany", storageClass: "san" } as const),
          ...{ block: false, node: "node-2" },
        }),
        at(11, {
          ...({ kind: "foreign-attachment", app: "app0", node: "node-1", disguisedFor: undefined } as const),
          forMs: 180_000,
        }),
        move(100, "node-1"),
      ],
    });

    const when = (line: string) => lines.find(({ what }) => what.startsWith(line))?.atMs ?? Infinity;
    expect(when("d1 is published on node-1")).toBeLessThan(when("NodeStageVolume d1"));
    expect(violations).toEqual([]);
    expect(starts(lines)).toEqual(["node-2", "node-1"]);
  });
});

describe("a claim that somebody replaces", () => {
  test("while the driver has not said whether it has made its volume: that one is deleted", async () => {
    const { violations, lines } = await run([
      at(0.5, { kind: "driver-faults", machine: "infra", rate: 0.6, slowMs: 100, forMs: 119_000 }),
      at(60, { kind: "replace-claim", app: "app0", volumeAfterMs: 1_000 }),
    ]);

    expect(lines.some(({ what }) => /CreateVolume .*: carried out, and the answer is lost/.test(what))).toBe(
      true,
    );
    expect(violations).toEqual([]);
  });
});

describe("a driver replaced by another version", () => {
  test("that stages nothing publishes without, and what was staged before stays in use until it can be unstaged", async () => {
    const { violations, lines } = await run([
      at(20, { kind: "upgrade-node-driver", node: "node-1", lacks: "STAGE_UNSTAGE_VOLUME", forMs: 40_000 }),
      at(20, { kind: "upgrade-node-driver", node: "node-2", lacks: "STAGE_UNSTAGE_VOLUME", forMs: 90_000 }),
      move(30, "node-2"),
    ]);

    expect(violations).toEqual([]);
    expect(starts(lines)).toEqual(["node-1", "node-2"]);
    expect(
      lines.find(({ who, what }) => who === "node-2" && what.startsWith("starts app0-0"))?.atMs,
    ).toBeGreaterThan(60_000);
  });

  test("without snapshots refuses them, and has none left behind once it can again", async () => {
    const { violations, lines } = await run([
      at(20, { kind: "upgrade-controller", lacks: "CREATE_DELETE_SNAPSHOT", forMs: 40_000 }),
      at(25, { kind: "snapshot", app: "app0", snapshot: "snap0" }),
      at(30, {
        kind: "restore",
        snapshot: "snap0",
        app: "app1",
        mode: "ReadWriteOnce",
        node: undefined,
        late: false,
      }),
    ]);

    expect(violations).toEqual([]);
    expect(lines.some(({ what }) => what.startsWith("starts app1-0 with d"))).toBe(true);
  });
});
