import { expect, test } from "vitest";
import { hostContract } from "../../test/contract/driver-host.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { createMemoryHost } from "../node/memory/host.ts";
import { createDriverHost } from "./driver-host.ts";
import { SimScheduler } from "./scheduler.ts";

hostContract("the machine in memory, as a driver sees it", async () => {
  const machine = createMemoryHost({ clock: new SimScheduler(createSeededRandom(1)).createClock() });
  await machine.files.makeDirectories("/root", 0o755);
  return { host: createDriverHost(machine), root: "/root" };
});

test("a file whose removal was not on the disk is gone for good once somebody was told that it is missing", async () => {
  for (let seed = 0; seed < 20; seed++) {
    const machine = createMemoryHost({ clock: new SimScheduler(createSeededRandom(seed)).createClock() });
    const { files } = createDriverHost(machine);
    await files.makeDirectory("/state", 0o700);
    await files.writeDurable("/state/record", "staged");
    await machine.files.removeFile("/state/record");

    await files.removeFile("/state/record");
    machine.crash({ random: createSeededRandom(seed) });

    expect(await files.stat("/state/record")).toBeUndefined();
  }
});
