import { readdirSync, readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatExplanation } from "../cli/output/explanation.ts";
import { PLAIN } from "../cli/output/style.ts";
import { createCluster } from "./cluster.ts";
import { explain, type Subject } from "./explain.ts";
import { FAULTS, type Fault } from "./faults.testing.ts";
import { NOW_MS } from "./objects.testing.ts";
import type { ClusterObjects } from "./objects.ts";
import { REASONS, says, type Reason } from "./reasons/reasons.ts";
import { volumeRows } from "./volumes.ts";
import { attachmentRows } from "./attachments.ts";
import { driverRows } from "./drivers.ts";
import { nodeRows } from "./nodes.ts";
import { operationRows } from "./operations.ts";

/** What `mooring why` prints for each fault. `MOORING_WRITE_GOLDEN=1` writes the files; then read the difference. */
const GOLDEN = resolve(import.meta.dirname, "../../test/fixtures/why");

function printed({ objects, subject }: Fault): string {
  const answer = explain(createCluster(objects, NOW_MS), subject);
  return answer === undefined ? "nothing\n" : `${formatExplanation(answer, NOW_MS, PLAIN)}\n`;
}

describe("why", () => {
  for (const fault of FAULTS) {
    test(`${fault.name}: the first sentence names ${fault.reason ?? "that all is well"}`, () => {
      const answer = explain(createCluster(fault.objects, NOW_MS), fault.subject);

      expect(answer?.blocker?.reason).toBe(fault.reason);
      expect(answer?.healthy).toBe(fault.reason === undefined);
      expect(printed(fault).split("\n")[0]).toBe(answer?.summary);
      expect(printed(fault)).not.toMatch(/\{\w+\}|<unknown>/);
    });

    test(`${fault.name}: what is printed is what the golden file says`, () => {
      const file = join(GOLDEN, `${fault.name}.txt`);
      if (process.env["MOORING_WRITE_GOLDEN"] === "1") {
        mkdirSync(GOLDEN, { recursive: true });
        writeFileSync(file, printed(fault));
      }

      expect(printed(fault)).toBe(readFileSync(file, "utf8"));
    });
  }

  test("every golden file belongs to a fault, and faults have names of their own", () => {
    const names = FAULTS.map(({ name }) => `${name}.txt`);

    expect(new Set(names).size).toBe(names.length);
    expect(readdirSync(GOLDEN).sort()).toEqual(names.sort());
  });

  test("every reason is named by some fault", () => {
    const shown = new Set(FAULTS.map(({ reason }) => reason));

    expect((Object.keys(REASONS) as Reason[]).filter((reason) => !shown.has(reason))).toEqual([]);
  });

  test("a message that anybody may have written cannot move the cursor or run a command", () => {
    const finding = {
      reason: "claim-missing",
      names: { claim: "shop/\u001b[2Jx", ns: "$(reboot)" },
      evidence: [],
    } as const;

    expect(says(finding)).toBe("claim shop/ [2Jx does not exist");
  });
});

describe("hostile objects", () => {
  const subjects: readonly Subject[] = [
    { kind: "pod", name: "web", namespace: "shop" },
    { kind: "pvc", name: "data", namespace: "shop" },
    { kind: "pv", name: "pv-1", namespace: "" },
    { kind: "node", name: "node-a", namespace: "" },
    { kind: "node", name: "node-b", namespace: "" },
  ];

  test("no field that is missing or of another type makes anything throw", () => {
    const twisted = fc.tuple(fc.constantFrom(...FAULTS), fc.infiniteStream(fc.nat({ max: 99 })));

    fc.assert(
      fc.property(twisted, ([{ objects }, numbers]) => {
        const damaged = createCluster(damagedObjects(objects, numbers), NOW_MS);

        for (const subject of subjects) explain(damaged, subject);
        for (const rows of [volumeRows, attachmentRows, nodeRows, driverRows, operationRows]) rows(damaged);
      }),
      { numRuns: 300 },
    );
  }, 60_000);
});

/** What we read ourselves is sound; what the cluster sent is not. */
function damagedObjects(objects: ClusterObjects, numbers: Iterator<number>): ClusterObjects {
  const { unread, waits } = objects;
  return { ...(damage(objects, numbers) as ClusterObjects), unread, waits };
}

/** One field in sixteen becomes something else, or goes. */
function damage(value: unknown, numbers: Iterator<number>, depth = 0): unknown {
  const roll = depth < 2 ? 99 : ((numbers.next().value as number | undefined) ?? 99);
  if (roll < 6) return [null, 7, "text", [], {}, undefined][roll];
  if (Array.isArray(value)) return value.map((item) => damage(item, numbers, depth + 1));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, damage(item, numbers, depth + 1)]),
  );
}
