import { describe, expect, test } from "vitest";
import { hasSysAdmin, mountObstacle, requireMounts, type MountFacts } from "./mount-rights.ts";

const ROOT: MountFacts = { platform: "linux", uid: 0, sysAdmin: true };

describe("whether this process can mount", () => {
  const ROWS: readonly (readonly [Partial<MountFacts>, string | undefined])[] = [
    [{}, undefined],
    [{ sysAdmin: undefined }, undefined],
    [{ uid: 1000 }, undefined], // a service with AmbientCapabilities=CAP_SYS_ADMIN
    [{ uid: 1000, sysAdmin: false }, "needs root, and this process runs as user 1000"],
    [{ uid: 1000, sysAdmin: undefined }, "needs root"],
    [{ sysAdmin: false }, "needs CAP_SYS_ADMIN"], // root in a container
    [{ uid: undefined, sysAdmin: undefined, platform: "darwin" }, "need Linux, and this is darwin"],
  ];
  for (const [facts, expected] of ROWS)
    test(`${JSON.stringify(facts)}: ${expected ?? "yes"}`, () => {
      const why = mountObstacle({ ...ROOT, ...facts });

      if (expected === undefined) expect(why).toBeUndefined();
      else expect(why).toContain(expected);
    });

  test("what cannot is refused by name, with the way out", () => {
    const start = () => requireMounts("the driver", "run it as root", { ...ROOT, uid: 7, sysAdmin: false });

    expect(start).toThrow(
      "the driver cannot run here: mounting needs root, and this process runs as user 7; run it as root",
    );
  });

  test("the capability is bit 21 of CapEff, and nothing else", () => {
    expect(hasSysAdmin("Name:\tx\nCapEff:\t0000000000200000\n")).toBe(true);
    expect(hasSysAdmin("CapEff:\t000001ffffdfffff\n")).toBe(false);
    expect(hasSysAdmin("CapPrm:\t0000000000200000\n")).toBeUndefined();
    expect(hasSysAdmin(undefined)).toBeUndefined();
  });
});
