import {
  Controller,
  GroupController,
  Identity,
  Node,
  type ControllerServiceCapability_RPC_Type,
  type GroupControllerServiceCapability_RPC_Type,
  type NodeServiceCapability_RPC_Type,
  type PluginCapability_Service_Type,
  type PluginCapability_VolumeExpansion_Type,
} from "./gen/csi_pb.ts";
import { createClient, type CallOptions, type Channel } from "./methods.ts";

/**
 * What a driver says it can do, asked once a connection. Behind a new connection there may be a new driver, so a lost one
 * forgets everything; a question that failed is asked again next time. Callers that ask at once share one call.
 * Bounded: four answers a channel.
 */
export interface Capabilities {
  plugin(options: CallOptions): Promise<PluginCapabilities>;
  controller(options: CallOptions): Promise<ReadonlySet<ControllerServiceCapability_RPC_Type>>;
  node(options: CallOptions): Promise<ReadonlySet<NodeServiceCapability_RPC_Type>>;
  groupController(options: CallOptions): Promise<ReadonlySet<GroupControllerServiceCapability_RPC_Type>>;
  /** Stops listening to the channel. */
  close(): void;
}

export interface PluginCapabilities {
  readonly services: ReadonlySet<PluginCapability_Service_Type>;
  readonly expansion: ReadonlySet<PluginCapability_VolumeExpansion_Type>;
}

export function createCapabilities(channel: Channel): Capabilities {
  const forgetters: (() => void)[] = [];
  const stopListening = channel.onLost(() => {
    for (const forget of forgetters) forget();
  });

  /** One answer, shared by all who ask until it fails or the connection is lost. */
  function remember<T>(ask: (options: CallOptions) => Promise<T>): (options: CallOptions) => Promise<T> {
    let known: Promise<T> | undefined;
    forgetters.push(() => (known = undefined));
    return (options) => {
      if (known !== undefined) return known;
      const asked = ask(options);
      known = asked;
      asked.catch(() => {
        if (known === asked) known = undefined;
      });
      return asked;
    };
  }

  return {
    plugin: remember(async (options) => {
      const { capabilities } = await createClient(Identity, channel).getPluginCapabilities({}, options);
      // A kind this version does not know decodes as none at all; what a newer driver says on top is no error.
      const types = capabilities.map(({ type }) => type);
      return {
        services: new Set(types.flatMap((type) => (type.case === "service" ? [type.value.type] : []))),
        expansion: new Set(
          types.flatMap((type) => (type.case === "volumeExpansion" ? [type.value.type] : [])),
        ),
      };
    }),
    controller: remember(async (options) =>
      rpcTypes((await createClient(Controller, channel).controllerGetCapabilities({}, options)).capabilities),
    ),
    node: remember(async (options) =>
      rpcTypes((await createClient(Node, channel).nodeGetCapabilities({}, options)).capabilities),
    ),
    groupController: remember(async (options) => {
      const client = createClient(GroupController, channel);
      return rpcTypes((await client.groupControllerGetCapabilities({}, options)).capabilities);
    }),
    close: stopListening,
  };
}

interface RpcCapability<T> {
  readonly type: { case: "rpc"; value: { type: T } } | { case: undefined; value?: undefined };
}

function rpcTypes<T>(capabilities: readonly RpcCapability<T>[]): ReadonlySet<T> {
  return new Set(capabilities.flatMap(({ type }) => (type.case === "rpc" ? [type.value.type] : [])));
}
