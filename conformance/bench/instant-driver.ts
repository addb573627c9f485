import { silentLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type,
  Identity,
  PluginCapability_Service_Type,
} from "../../src/csi/gen/csi_pb.ts";
import { serve } from "../../src/csi/methods.ts";
import { createCsiServer, type CsiServer } from "../../src/csi/server.ts";

export const INSTANT_DRIVER = "instant.mooring.example";

/** A driver that publishes at once: what is left of an attach is the attacher and the API server. */
export function createInstantDriver(socketPath: string): CsiServer {
  const controllerService = {
    type: { case: "service" as const, value: { type: PluginCapability_Service_Type.CONTROLLER_SERVICE } },
  };
  const publishes = {
    type: {
      case: "rpc" as const,
      value: { type: ControllerServiceCapability_RPC_Type.PUBLISH_UNPUBLISH_VOLUME },
    },
  };
  return createCsiServer(
    { clock: createSystemClock(), log: silentLogger },
    {
      socketPath,
      served: [
        ...serve(Identity, {
          probe: async () => ({ ready: true }),
          getPluginInfo: async () => ({ name: INSTANT_DRIVER, vendorVersion: "1" }),
          getPluginCapabilities: async () => ({ capabilities: [controllerService] }),
        }),
        ...serve(Controller, {
          controllerGetCapabilities: async () => ({ capabilities: [publishes] }),
          controllerPublishVolume: async ({ volumeId }) => ({ publishContext: { devicePath: volumeId } }),
          controllerUnpublishVolume: async () => ({}),
        }),
      ],
    },
  );
}
