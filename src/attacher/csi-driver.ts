import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock } from "../base/clock.ts";
import { createCapabilities } from "../csi/capabilities.ts";
import { isCsiError } from "../csi/errors.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as Rpc,
  Identity,
  PluginCapability_Service_Type as Service,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapabilitySchema,
} from "../csi/gen/csi_pb.ts";
import { createClient, type Channel } from "../csi/methods.ts";
import type { VolumeCapability } from "./capability.ts";
import { DriverError, type CallOptions, type ControllerDriver, type DriverCapabilities } from "./driver.ts";

/** The driver at the other end of a channel, in the words of this room. */
export function createCsiDriver({
  channel,
  clock,
}: {
  readonly channel: Channel;
  readonly clock: Clock;
}): ControllerDriver {
  const identity = createClient(Identity, channel);
  const controller = createClient(Controller, channel);

  return {
    probe: ({ timeoutMs, signal }) =>
      // A driver that says nothing about it is ready; the wrapper tells "false" from "absent".
      translated(async () => (await identity.probe({}, { timeoutMs, signal })).ready !== false),
    pluginName: (options) => translated(async () => (await identity.getPluginInfo({}, options)).name),
    capabilities: (options) => translated(() => readCapabilities({ channel, clock }, options)),
    publish: ({ secrets, capability, volumeContext, ...request }, options) =>
      translated(async () => {
        const message = {
          ...request,
          volumeCapability: toMessage(capability),
          volumeContext: { ...volumeContext },
          secrets: { ...secrets?.reveal() },
        };
        return (await controller.controllerPublishVolume(message, options)).publishContext;
      }),
    unpublish: ({ secrets, ...request }, options) =>
      translated(async () => {
        await controller.controllerUnpublishVolume(
          { ...request, secrets: { ...secrets?.reveal() } },
          options,
        );
      }),
    listVolumes: (request, options) =>
      translated(async () => {
        const { entries, nextToken } = await controller.listVolumes(request, options);
        return {
          nextToken,
          entries: entries.flatMap(({ volume, status }) =>
            volume && status
              ? [{ volumeId: volume.volumeId, publishedNodeIds: status.publishedNodeIds }]
              : [],
          ),
        };
      }),
  };
}

/** Two questions within one deadline; the second only where there is a controller service to ask. */
async function readCapabilities(
  { channel, clock }: { channel: Channel; clock: Clock },
  { timeoutMs, signal }: CallOptions,
): Promise<DriverCapabilities> {
  const capabilities = createCapabilities(channel);
  const endsAtMs = clock.now() + timeoutMs;
  try {
    const { services } = await capabilities.plugin({ timeoutMs, signal });
    const rpcs = services.has(Service.CONTROLLER_SERVICE)
      ? await capabilities.controller({ timeoutMs: Math.max(1, endsAtMs - clock.now()), signal })
      : new Set<Rpc>();
    return {
      publishes: rpcs.has(Rpc.PUBLISH_UNPUBLISH_VOLUME),
      publishReadonly: rpcs.has(Rpc.PUBLISH_READONLY),
      singleNodeMultiWriter: rpcs.has(Rpc.SINGLE_NODE_MULTI_WRITER),
      listsPublishedNodes: rpcs.has(Rpc.LIST_VOLUMES) && rpcs.has(Rpc.LIST_VOLUMES_PUBLISHED_NODES),
    };
  } finally {
    capabilities.close();
  }
}

function toMessage({
  accessMode,
  access,
}: VolumeCapability): MessageInitShape<typeof VolumeCapabilitySchema> {
  const mode = { accessMode: { mode: Mode[accessMode] } };
  if (access.kind === "block") return { ...mode, accessType: { case: "block", value: {} } };
  const { fsType, mountFlags } = access;
  return { ...mode, accessType: { case: "mount", value: { fsType, mountFlags: [...mountFlags] } } };
}

/** Errors keep the number of their code and the driver's words; what stands behind them may hold more, and stays here. */
async function translated<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (isCsiError(error)) throw new DriverError(error.number, error.detail);
    throw error;
  }
}
