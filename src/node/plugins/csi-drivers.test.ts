import { describe, expect, test } from "vitest";
import type { Labels } from "../../base/metrics.ts";
import { noMetrics } from "../../base/metrics.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { silentLogger } from "../../base/log.ts";
import { Node } from "../../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../../csi/memory-channel.ts";
import { serve } from "../../csi/methods.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createCsiDrivers } from "./csi-drivers.ts";

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const observed: Labels<string>[] = [];
  let asked = 0;
  const served = serve(Node, {
    nodeGetInfo: async () => {
      await clock.sleep(1_000);
      return { nodeId: "id" };
    },
    nodeGetCapabilities: async () => {
      asked++;
      await clock.sleep(1_000);
      return {};
    },
  });
  const drivers = createCsiDrivers({
    clock,
    connect: () => createMemoryChannel({ clock, log: silentLogger }, served),
    metrics: { ...noMetrics, histogram: () => ({ observe: (_, labels) => void observed.push(labels!) }) },
  });
  const open = () => drivers.open({ name: "d", endpoint: "/csi.sock", version: "1.0.0" });
  return { scheduler, drivers, open, observed, asked: () => asked };
}

const { signal } = new AbortController();

describe("registered drivers", () => {
  test("one that is replaced finishes its calls; new ones go to its successor", async () => {
    const { scheduler, drivers, open } = given();
    const first = open();
    drivers.put(first);
    const running = first.call(Node.method.nodeGetInfo, {}, { signal });

    drivers.put(open());
    await scheduler.runFor(1_000);

    expect((await running).nodeId).toBe("id");
    expect(drivers.get("d")).not.toBe(first);
    await expect(first.call(Node.method.nodeGetInfo, {}, { signal })).rejects.toMatchObject({
      code: "UNAVAILABLE",
    });
  });

  test("removing one that was replaced leaves its successor", () => {
    const { drivers, open } = given();
    const [first, second] = [open(), open()];
    const changes: string[] = [];
    drivers.onChange((name) => changes.push(name));
    drivers.put(first);
    drivers.put(second);

    drivers.remove(first);
    expect(drivers.get("d")).toBe(second);
    drivers.remove(second);

    expect(drivers.get("d")).toBeUndefined();
    expect(changes).toEqual(["d", "d", "d"]);
  });

  test("who gives up asking what a driver can do does not end the question for others", async () => {
    const { scheduler, open, asked } = given();
    const driver = open();
    const impatient = new AbortController();
    const first = driver.capabilities(impatient.signal);
    const second = driver.capabilities(signal);

    impatient.abort();
    await expect(first).rejects.toThrow();
    await scheduler.runFor(1_000);

    expect(await second).toEqual(new Set());
    expect(asked()).toBe(1);
  });

  test("every call is measured by driver, method and code as Go spells it", async () => {
    const { scheduler, open, observed } = given();
    const driver = open();
    const late = driver.call(Node.method.nodeGetInfo, {}, { signal, timeoutMs: 10, migrated: true });
    late.catch(() => undefined);
    await scheduler.runFor(1_000);

    await expect(late).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED" });
    expect(observed).toEqual([
      {
        driver_name: "d",
        method_name: "/csi.v1.Node/NodeGetInfo",
        grpc_status_code: "DeadlineExceeded",
        migrated: "true",
      },
    ]);
  });
});
