import { expect, test } from "vitest";
import { chance, pick, type Random } from "../../base/random.ts";
import { isJsonList, isJsonObject } from "../../kube/patch/json.ts";
import { forSeeds } from "../../sim/seeds.ts";
import defaults from "../../../test/fixtures/apiserver/recordings/02-create-defaults.json" with { type: "json" };
import validation from "../../../test/fixtures/apiserver/recordings/10-validation.json" with { type: "json" };
import { Replay, type Step } from "./replay.testing.ts";

const STEPS: readonly Step[] = [...defaults.steps, ...validation.steps];
/** Whole objects, as the server once showed them: every field that a default fills is there to be lost. */
const CREATES: readonly Step[] = STEPS.flatMap((step) => [
  step,
  ...(step.response.status === 201
    ? [{ ...step, request: { ...step.request, body: step.response.body } }]
    : []),
]).filter(({ request }) => request.method === "POST");

const ODD_TEXTS = ["", "x", "Bad Name", "__proto__", "constructor", "0", "-1Gi", "9".repeat(300)];

/** What a client might send instead: something missing, empty, doubled or odd, anywhere. */
function damage(value: unknown, random: Random): unknown {
  if (chance(random, 0.02)) return undefined;
  if (isJsonList(value)) {
    if (chance(random, 0.05)) return [];
    const items = value.map((item) => damage(item, random)).filter((item) => item !== undefined);
    return chance(random, 0.05) ? [...items, ...items] : items;
  }
  if (isJsonObject(value)) {
    const members = Object.entries(value).map(([key, member]) => [key, damage(member, random)] as const);
    return Object.fromEntries(members.filter(([, member]) => member !== undefined));
  }
  if (typeof value === "string" && chance(random, 0.1)) return pick(random, ODD_TEXTS);
  if (typeof value === "number" && chance(random, 0.2)) return random.int(3) - 1;
  return value;
}

test("whatever a client sends is taken or refused, never a fault of ours; what is taken can be sent again", async () => {
  let [taken, refused] = [0, 0];

  await forSeeds(100, (random) => {
    const replay = new Replay();
    // Half of the world is whole: the namespaces, accounts and classes that the rest looks for.
    for (const step of CREATES) if (chance(random, 0.5)) replay.answer(step);
    for (const step of CREATES) {
      const body = damage(step.request.body, random);
      const answer = replay.answer({ ...step, request: { ...step.request, body: body ?? {} } });
      if (answer?.status === 201) taken++;
      else refused++;
    }
    for (const { before, after } of replay.putAgain()) expect(after).toEqual(before);
  });

  // Both happen often, so both were tried.
  expect(taken).toBeGreaterThan(1_000);
  expect(refused).toBeGreaterThan(1_000);
});
