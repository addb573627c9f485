import { describe, expect, test } from "vitest";
import { isKubeError } from "../kube/errors.ts";
import { commandProblems } from "./commands.testing.ts";
import type { Cluster } from "./cluster.ts";
import { DAMAGES, type Damage } from "./damages.testing.ts";
import { explain } from "./explain.ts";
import type { Explanation } from "./explanation.ts";
import { FaultWorld, type Base } from "./fault-world.testing.ts";
import type { Reason } from "./reasons/reasons.ts";
import type { Subject } from "./subjects.ts";

/*
 * Every kind of object with every kind of damage, singly and in pairs, on the embedded API server. Whatever was done: a cause
 * that is named was injected, nothing is healthy while the pod is cut off from its data, and every command works as it is.
 */

const EVERY = process.env["MOORING_EVERY_STEP"] !== undefined;
/** All 3,700 pairs take minutes; of these, with the damages by themselves, there are more than 500. */
const PAIR_STEP = EVERY ? 1 : 7;

const BASES: readonly Base[] = ["running", "waiting", "unbound"];
/** What is said of the base as it is: where nothing was broken, it is the truth. */
const ITSELF: Readonly<Record<Base, readonly Reason[]>> = {
  running: [],
  waiting: ["mount-pending"],
  unbound: ["provisioner-silent", "scheduler-silent"],
};

const SUBJECTS: readonly Subject[] = [
  { kind: "pod", name: "web", namespace: "shop" },
  { kind: "pvc", name: "data", namespace: "shop" },
  { kind: "pv", name: "pv-1", namespace: "" },
  { kind: "node", name: "node-a", namespace: "" },
  { kind: "node", name: "node-b", namespace: "" },
];

/** Undefined where the server refused one of them: then it is no fault that can happen. */
async function damaged(base: Base, applied: readonly Damage[]): Promise<Cluster | undefined> {
  const world = await FaultWorld.create(base);
  try {
    for (const { apply } of applied) await apply(world);
  } catch (error) {
    if (isKubeError(error, "NotFound", "Conflict", "AlreadyExists", "Invalid")) return undefined;
    throw error;
  }
  await world.later(120);
  return world.read();
}

function nameOf({ kind, name }: Damage): string {
  return `${kind} ${name}`;
}

function checkAnswers(cluster: Cluster, base: Base, applied: readonly Damage[]): void {
  const told = SUBJECTS.map((subject) => [subject, explain(cluster, subject)] as const);
  const [[, ofPod] = []] = told;
  expect(ofPod, "the pod is explained").toBeDefined();
  if (ofPod !== undefined) checkCause(ofPod, base, applied);
  for (const [subject, answer] of told) {
    if (answer === undefined) continue;
    checkCommand(cluster, subject, answer);
    expect(answer.summary, "a sentence without a gap").not.toMatch(/<unknown>|\{\w+\}|undefined/);
  }
}

function checkCause(answer: Explanation, base: Base, applied: readonly Damage[]): void {
  const reason = answer.blocker?.reason;
  const broken = applied.some(({ breaks }) => breaks);
  const injected = applied.flatMap(({ causes }) => causes[base] ?? []);
  // Of a pod that ends nothing is claimed but that: what it had may be on its way already, unless its node says what keeps it.
  const isEnding = /^Pod shop\/web is ending, /.test(answer.summary);
  const claims = answer.healthy && (!isEnding || applied.some(({ isSaid, breaks }) => isSaid && breaks));
  expect(claims && broken, `healthy while it is broken: ${answer.summary}`).toBe(false);
  if (reason === undefined) return;
  // Of two damages one may hide the other, and then nobody knows; of one alone it is known.
  const beside = applied.flatMap((damage) => damage.beside ?? []);
  const unknown: readonly Reason[] = applied.length > 1 ? ["contradiction", ...beside] : [];
  expect([...injected, ...(broken ? unknown : ITSELF[base])], answer.summary).toContain(reason);
  expect(answer.confidence === "unknown").toBe(reason === "contradiction");
}

function checkCommand(cluster: Cluster, { kind, name }: Subject, { blocker }: Explanation): void {
  if (blocker === undefined) return;
  const { help } = blocker;
  const command = "command" in help ? help.command : help.look;
  if (command === undefined) return;
  const note = "command" in help ? (help.note ?? "") : "";
  expect(commandProblems(cluster, command, note), command).toEqual([]);
  expect(command, "it does not recommend itself").not.toMatch(new RegExp(`^mooring why ${kind}/${name}\\b`));
}

function applicable(base: Base): readonly Damage[] {
  return DAMAGES.filter(({ causes }) => causes[base] !== undefined);
}

describe("one damage", () => {
  for (const base of BASES)
    for (const damage of applicable(base))
      test(`${base}: ${nameOf(damage)}`, async () => {
        const cluster = await damaged(base, [damage]);

        expect(cluster, "the server accepts it").toBeDefined();
        if (cluster !== undefined) checkAnswers(cluster, base, [damage]);
      });

  test("nothing damaged, nothing wrong", async () => {
    for (const base of BASES) {
      const cluster = await damaged(base, []);
      if (cluster !== undefined) checkAnswers(cluster, base, []);
    }
  });
});

/** A node has one page. */
function isPossible(first: Damage, second: Damage): boolean {
  return !(first.isSaid && second.isSaid);
}

describe("two damages", () => {
  for (const base of BASES)
    test(`${base}: in either order`, async () => {
      const all = applicable(base);
      const pairs = all.flatMap((first) =>
        all.filter((item) => item !== first && isPossible(first, item)).map((second) => [first, second]),
      );
      let tried = 0;
      const failures: string[] = [];
      for (const [index, pair] of pairs.entries()) {
        if (index % PAIR_STEP !== 0) continue;
        const cluster = await damaged(base, pair);
        if (cluster === undefined) continue;
        tried++;
        try {
          checkAnswers(cluster, base, pair);
        } catch (error) {
          failures.push(`${pair.map(nameOf).join(", then ")}: ${String(error)}`);
        }
      }

      expect(failures, `${failures.length} of ${tried} pairs`).toEqual([]);
      expect(tried).toBeGreaterThan(0);
    }, 300_000);
});
