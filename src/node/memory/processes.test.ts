import { createSeededRandom } from "../../base/seeded-random.ts";
import { nodeProcessesContract } from "../../../test/contract/node-processes.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { createMemoryHost } from "./host.ts";

nodeProcessesContract("the machine in memory", async () => {
  const host = createMemoryHost({ clock: new SimScheduler(createSeededRandom(1)).createClock() });
  let devices = 0;
  return {
    host,
    root: "/root",
    async device(sizeBytes) {
      const path = `/dev/sd${devices++}`;
      host.addDevice(path, sizeBytes);
      return path;
    },
    async container(sketch) {
      const pid = host.startProcess(sketch);
      return { pid, end: async () => host.endProcess(pid) };
    },
  };
});
