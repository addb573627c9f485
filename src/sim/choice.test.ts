import { expect, test } from "vitest";
import { chooseActs, parseKinds, parseSteps, problemOfSteps, renderSteps } from "./choice.ts";
import type { Plan } from "./plan.ts";

const KINDS = ["add-app", "kill", "freeze", "drain"];
const plan: Plan = [
  {
    atMs: 1,
    act: {
      kind: "add-app",
      app: "a",
      mode: "ReadWriteOnce",
      storageClass: "san",
      block: false,
      node: undefined,
    },
  },
  { atMs: 2, act: { kind: "kill", process: "attacher", forMs: 5_000 } },
  { atMs: 3, act: { kind: "freeze", process: "attacher", forMs: 5_000 } },
];

for (const [text, kinds] of [
  ["kill", ["add-app", "kill"]],
  ["freeze,kill", ["add-app", "kill", "freeze"]],
  ["-kill", ["add-app", "freeze", "drain"]],
  ["-kill,-drain", ["add-app", "freeze"]],
] as const)
  test(`--faults ${text} is ${kinds.join(" ")}`, () => {
    expect(parseKinds(text, KINDS)).toEqual(kinds);
  });

for (const [text, problem] of [
  ["kil", /"kil" is no kind of act: give some of add-app, kill/],
  ["kill,-freeze", /mixes both forms/],
  ["", /is no kind of act/],
] as const)
  test(`--faults "${text}" is refused`, () => {
    expect(() => parseKinds(text, KINDS)).toThrow(problem);
  });

test("steps that are left out keep their places", () => {
  expect(chooseActs(plan, { kinds: ["freeze"] }).map((act) => act?.kind)).toEqual([
    undefined,
    undefined,
    "freeze",
  ]);
  const [, kill] = chooseActs(plan, { only: parseSteps("1:forMs=100") });
  expect(kill).toEqual({ kind: "kill", process: "attacher", forMs: 100 });
});

test("steps are read back as they were written", () => {
  const text = "3,7:forMs=1200:taint=false:state=cut,12";

  expect(renderSteps(parseSteps(text))).toBe(text);
});

for (const text of ["x", "-1", "1,,2", "1.5", "1:forMs", "1:=3"])
  test(`--only ${text} is refused`, () => {
    expect(() => parseSteps(text)).toThrow(/is no step|changes nothing/);
  });

test("a step or a field that the plan does not have is named", () => {
  expect(problemOfSteps(plan, parseSteps("0,9"))).toBe("step 9 is not in the plan: it has 0 to 2");
  expect(problemOfSteps(plan, parseSteps("1:taint=true"))).toBe(
    "step 1 (kill) has no taint: it has process, forMs",
  );
  expect(problemOfSteps(plan, parseSteps("1:forMs=7"))).toBeUndefined();
});
