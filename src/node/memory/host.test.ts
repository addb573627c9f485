import { createSeededRandom } from "../../base/seeded-random.ts";
import { nodeHostContract } from "../../../test/contract/node-host.ts";
import { createMemoryHost } from "./host.ts";
import { SimScheduler } from "../../sim/scheduler.ts";

nodeHostContract("the machine in memory", async () => {
  const host = createMemoryHost({ clock: new SimScheduler(createSeededRandom(1)).createClock() });
  await host.files.makeDirectories("/root", 0o755);
  let devices = 0;
  return {
    host,
    root: "/root",
    async device(sizeBytes) {
      const path = `/dev/sd${devices++}`;
      host.addDevice(path, sizeBytes);
      return path;
    },
  };
});
