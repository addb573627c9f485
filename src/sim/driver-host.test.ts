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
