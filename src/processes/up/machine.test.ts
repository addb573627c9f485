import { describe, expect, test } from "vitest";
import { chooseMachine, type MachineFacts, type NodeMode } from "./machine.ts";

const GOOD: MachineFacts = { platform: "linux", uid: 0, sysAdmin: true, missingTool: undefined };

describe("which machine the nodes get", () => {
  const ROWS: readonly (readonly [NodeMode, Partial<MachineFacts>, string])[] = [
    ["auto", {}, "real"],
    ["real", {}, "real"],
    ["simulated", {}, "asked for by --node-mode"],
    ["auto", { uid: 1000, sysAdmin: false }, "mounting needs root"],
    ["auto", { uid: undefined, platform: "win32" }, "need Linux, and this is win32"],
    ["auto", { missingTool: "losetup" }, "losetup is not installed"],
  ];
  for (const [mode, facts, expected] of ROWS)
    test(`${mode} with ${JSON.stringify(facts)}: ${expected}`, () => {
      const machine = chooseMachine(mode, { ...GOOD, ...facts });

      expect(machine.real ? "real" : machine.why).toContain(expected);
    });

  test("real where that cannot be is refused, with the reason and the way out", () => {
    expect(() => chooseMachine("real", { ...GOOD, uid: 1000, sysAdmin: false })).toThrow(
      /mounting needs root, and this process runs as user 1000; use --node-mode simulated/,
    );
  });
});
