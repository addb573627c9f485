import {
  Identity,
  Node,
  NodeServiceCapability_RPC_Type as Rpc,
  PluginCapability_Service_Type as Service,
  VolumeUsage_Unit as Unit,
} from "../../csi/gen/csi_pb.ts";
import { CsiError } from "../../csi/errors.ts";
import { serve, type ServedMethod } from "../../csi/methods.ts";
import { topologyKey } from "../../driver/options.ts";
import { bindDevice, mountVolume, unmountVolume } from "../../node/memory/driver-acts.ts";
import type { MemoryHost } from "../../node/memory/host.ts";

export interface SimulatedDriverOptions {
  readonly host: MemoryHost;
  readonly driverName: string;
  readonly nodeId: string;
  readonly version: string;
}

/**
 * The node service of the loop driver where nothing can be mounted: it answers as that does, on a machine in memory. What it
 * holds is lost with the process, as a simulated node is.
 */
export function simulatedDriver(options: SimulatedDriverOptions): readonly ServedMethod[] {
  const { driverName, version } = options;
  return [
    ...serve(Identity, {
      getPluginInfo: async () => ({ name: driverName, vendorVersion: version, manifest: {} }),
      getPluginCapabilities: async () => ({
        capabilities: [Service.CONTROLLER_SERVICE, Service.VOLUME_ACCESSIBILITY_CONSTRAINTS].map((type) => ({
          type: { case: "service" as const, value: { type } },
        })),
      }),
      probe: async () => ({ ready: true }),
    }),
    ...serveNode(options),
  ];
}

const CAPABILITIES = [
  Rpc.STAGE_UNSTAGE_VOLUME,
  Rpc.GET_VOLUME_STATS,
  Rpc.EXPAND_VOLUME,
  Rpc.SINGLE_NODE_MULTI_WRITER,
];

function serveNode({ host, driverName, nodeId }: SimulatedDriverOptions): readonly ServedMethod[] {
  return serve(Node, {
    nodeGetInfo: async () => ({
      nodeId,
      accessibleTopology: { segments: { [topologyKey({ name: driverName })]: nodeId } },
    }),
    nodeGetCapabilities: async () => ({
      capabilities: CAPABILITIES.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
    }),
    nodeStageVolume: async ({ volumeId, stagingTargetPath, volumeCapability }) => {
      if (volumeCapability?.accessType.case === "mount") await mountVolume(host, stagingTargetPath, volumeId);
      return {};
    },
    nodeUnstageVolume: async ({ stagingTargetPath }) => {
      await unmountVolume(host, stagingTargetPath);
      return {};
    },
    nodePublishVolume: async ({ volumeId, targetPath, volumeCapability }) => {
      if (volumeCapability?.accessType.case === "mount") await mountVolume(host, targetPath, volumeId);
      else await bindDevice(host, targetPath, volumeId);
      return {};
    },
    nodeUnpublishVolume: async ({ targetPath }) => {
      await unmountVolume(host, targetPath);
      return {};
    },
    nodeExpandVolume: async ({ capacityRange }) => ({ capacityBytes: capacityRange?.requiredBytes ?? 0n }),
    nodeGetVolumeStats: async ({ volumePath }) => {
      if (!(await host.mounts.isMountPoint(volumePath)))
        throw new CsiError("NOT_FOUND", `nothing is mounted at ${volumePath}`);
      const { capacityBytes, availableBytes, usedBytes } = await host.files.usage(volumePath);
      const bytes = {
        total: BigInt(capacityBytes),
        available: BigInt(availableBytes),
        used: BigInt(usedBytes),
      };
      return { usage: [{ unit: Unit.BYTES, ...bytes }] };
    },
  });
}
