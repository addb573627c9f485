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
  { isReady, problem }: { readonly isReady: () => boolean; readonly problem: () => string | undefined },
): Handlers<typeof Identity> {
  const { settings } = context;
  return {
    getPluginInfo: async () => ({ name: settings.name, vendorVersion: settings.vendorVersion, manifest: {} }),
    getPluginCapabilities: async () => {
      const services = [
        // Of the plugin as a whole, also where another process serves the controller.
        Service.CONTROLLER_SERVICE,
        Service.GROUP_CONTROLLER_SERVICE,
        ...(settings.snapshotMetadata ? [Service.SNAPSHOT_METADATA_SERVICE] : []),
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
      const wrong = problem();
      if (wrong !== undefined) throw failedPrecondition(wrong);
      return { ready: isReady() };
    },
  };
}
