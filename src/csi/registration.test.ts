import { describe, expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { Registration } from "./gen/pluginregistration_pb.ts";
import { createMemoryChannel } from "./memory-channel.ts";
import { serve } from "./methods.ts";
import {
  askPlugin,
  compareVersions,
  serveRegistration,
  tellPlugin,
  type RegistrationOutcome,
} from "./registration.ts";

const deps = { clock: createSystemClock(), log: silentLogger };
const within = { timeoutMs: 1_000 };
const asking = { ...within, socketPath: "/registry/d-reg.sock" };

describe("registration", () => {
  test("a driver says where it is, and learns how it went", async () => {
    const outcomes: RegistrationOutcome[] = [];
    const announcement = { driverName: "d.example.com", endpoint: "/plugins/d/csi.sock" };
    const channel = createMemoryChannel(
      deps,
      serveRegistration(announcement, (outcome) => outcomes.push(outcome)),
    );

    const found = await askPlugin(channel, asking);
    await tellPlugin(channel, { kind: "registered" }, within);
    await tellPlugin(channel, { kind: "refused", error: "node d is gone" }, within);

    expect(found).toEqual({ ...announcement, version: "1.0.0" });
    expect(outcomes).toEqual([{ kind: "registered" }, { kind: "refused", error: "node d is gone" }]);
  });

  const plugin = (info: { type?: string; name?: string; endpoint?: string; supportedVersions?: string[] }) =>
    createMemoryChannel(
      deps,
      serve(Registration, {
        getInfo: async () => ({ type: "CSIPlugin", name: "d", supportedVersions: ["1.0.0"], ...info }),
      }),
    );

  test("without an endpoint the driver is on the registration socket itself", async () => {
    expect((await askPlugin(plugin({}), asking))?.endpoint).toBe("/registry/d-reg.sock");
  });

  test("plugins of other kinds are none of our business", async () => {
    expect(await askPlugin(plugin({ type: "DevicePlugin" }), asking)).toBeUndefined();
  });

  test("the highest 1.x is taken, compared as numbers", async () => {
    const supportedVersions = ["1.2.0", "1.10.0", "2.0.0", "0.3.0", "junk"];

    expect((await askPlugin(plugin({ supportedVersions }), asking))?.version).toBe("1.10.0");
  });

  for (const [claim, info] of [
    ["no version at all", { supportedVersions: [] }],
    ["only 2.x", { supportedVersions: ["2.0.0"] }],
    ["no name", { name: "" }],
  ] as const) {
    test(`${claim} is refused`, async () => {
      const bad = plugin({
        ...info,
        supportedVersions: [...("supportedVersions" in info ? info.supportedVersions : ["1.0.0"])],
      });

      await expect(askPlugin(bad, asking)).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    });
  }

  test("versions are ordered, and what is none comes first", () => {
    const sorted = ["1.10.0", "junk", "1.2", "v1.2.1", "1.2.0"].sort(compareVersions);

    expect(sorted).toEqual(["junk", "1.2", "1.2.0", "v1.2.1", "1.10.0"]);
  });
});
