import type { Identity } from "../csi/gen/csi_pb.ts";
import {
  PluginCapability_Service_Type as Service,
  PluginCapability_VolumeExpansion_Type as Expansion,
} from "../csi/gen/csi_pb.ts";
import type { Handlers } from "../csi/methods.ts";
import type { Context } from "./context.ts";
import { failedPrecondition } from "./errors.ts";

/** The Identity service. Probe takes no lock and starts no child: it may be asked every second. */
export function createIdentity(
  context: Context,
  { isReady }: { readonly isReady: () => boolean },
): Handlers<typeof Identity> {
  const { settings, host } = context;
  return {
    getPluginInfo: async () => ({ name: settings.name, vendorVersion: settings.vendorVersion, manifest: {} }),
    getPluginCapabilities: async () => {
      const services = [
        // Of the plugin as a whole, also where another process serves the controller.
        Service.CONTROLLER_SERVICE,
        Service.GROUP_CONTROLLER_SERVICE,
        ...(settings.topology ? [Service.VOLUME_ACCESSIBILITY_CONSTRAINTS] : []),
      ];
      const expands = settings.controllerExpansion || settings.nodeExpansion;
      return {
        capabilities: [
          ...services.map((type) => ({ type: { case: "service" as const, value: { type } } })),
          ...(expands
            ? [{ type: { case: "volumeExpansion" as const, value: { type: Expansion.ONLINE } } }]
            : []),
        ],
      };
    },
    probe: async () => {
      const missing = host.filesystems.missingTool();
      if (missing !== undefined) throw failedPrecondition(`${missing} is not installed on this machine`);
      return { ready: isReady() };
    },
  };
}
