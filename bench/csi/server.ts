import { createSystemClock } from "../../src/base/system-clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { Controller, Identity } from "../../src/csi/gen/csi_pb.ts";
import { serve as served } from "../../src/csi/methods.ts";
import { createCsiServer } from "../../src/csi/server.ts";

/** A driver that answers at once, and tells its own heap when asked who it is. */
export async function serve({ socketPath }: { socketPath: string }): Promise<{ pid: number }> {
  const server = createCsiServer(
    { clock: createSystemClock(), log: silentLogger },
    {
      socketPath,
      served: [
        ...served(Identity, {
          probe: async () => ({ ready: true }),
          getPluginInfo: async () => ({ name: "bench", vendorVersion: "1", manifest: weigh() }),
        }),
        ...served(Controller, {
          controllerPublishVolume: async ({ volumeId }) => ({
            publishContext: { devicePath: `/dev/disk/by-id/${volumeId}` },
          }),
        }),
      ],
    },
  );
  await server.start();
  return { pid: process.pid };
}

/** After two collections: the first one only finds out which finalizers are due. */
function weigh(): Record<string, string> {
  globalThis.gc?.();
  globalThis.gc?.();
  return {
    heapBytes: String(process.memoryUsage().heapUsed),
    resources: String(process.getActiveResourcesInfo().length),
  };
}
