import { describe, expect, test } from "vitest";
import { ALL_CONTROLLERS, CONTROLLERS, parseControllers } from "./selection.ts";

describe("--controllers", () => {
  for (const [text, running] of [
    ["*", CONTROLLERS],
    ["namespace-controller", ["namespace-controller"]],
    ["*,-namespace-controller", CONTROLLERS.filter((name) => name !== "namespace-controller")],
    ["-namespace-controller,*", CONTROLLERS.filter((name) => name !== "namespace-controller")],
    ["*,-garbagecollector", CONTROLLERS.filter((name) => name !== "garbage-collector-controller")],
    ["-*", undefined],
    ["", undefined],
    ["-namespace-controller", []], // without a star nothing is on by itself
    [" event-expiry , pv-protection", ["persistentvolume-protection-controller", "event-expiry"]],
  ] as const) {
    test(JSON.stringify(text), () => {
      const parsed = parseControllers(text);

      if (running === undefined) expect(parsed).toMatch(/is not in the list of known controllers/);
      else expect(typeof parsed === "string" ? parsed : [...parsed]).toEqual([...running]);
    });
  }

  test("an unknown name is refused by name, with those that are known", () => {
    expect(parseControllers("*,-nosuch,constructor")).toBe(
      `"nosuch", "constructor" is not in the list of known controllers: ${CONTROLLERS.join(", ")}.`,
    );
  });

  test("all is the default", () => {
    expect(parseControllers("*")).toEqual(ALL_CONTROLLERS);
  });
});
