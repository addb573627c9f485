import { expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { createMemoryHost } from "../node/memory/host.ts";
import { KernelFaults } from "./kernel-faults.ts";
import { SimScheduler } from "./scheduler.ts";

function machine() {
  const random = createSeededRandom(1);
  const clock = new SimScheduler(random.fork("scheduler")).createClock();
  const faults = new KernelFaults(random.fork("kernel"));
  const real = createMemoryHost({ clock });
  return { faults, real, host: faults.host(real) };
}

test("nothing is refused while nothing is wrong", async () => {
  const { host } = machine();

  await host.files.writeDurable("/tmp/a", "text");
  expect(await host.files.read("/tmp/a")).toBe("text");
});

test("calls are refused as a kernel refuses them, and go on once it is healed", async () => {
  const { faults, host } = machine();
  faults.rate = 1;

  await expect(host.mounts.unmount("/tmp")).rejects.toMatchObject({ code: "Busy" });
  await expect(host.files.list("/tmp")).rejects.toMatchObject({ code: "Corrupted" });

  faults.rate = 0;
  expect(await host.files.list("/tmp")).toEqual([]);
});

test("a write whose fsync failed is there or is not", async () => {
  const { faults, host, real } = machine();
  faults.rate = 1;
  const paths = Array.from({ length: 20 }, (_, at) => `/tmp/${at}`);
  for (const path of paths) await host.files.writeDurable(path, "text").catch(() => undefined);

  const written = (await real.files.list("/tmp"))?.length ?? 0;
  expect(written).toBeGreaterThan(0);
  expect(written).toBeLessThan(paths.length);
});
