import { createLogger } from "../../base/log.ts";
import { CsiError } from "../../csi/errors.ts";
import { Node } from "../../csi/gen/csi_pb.ts";
import { Registration } from "../../csi/gen/pluginregistration_pb.ts";
import { createMemoryChannel } from "../../csi/memory-channel.ts";
import { serve, type Channel, type ServedMethod } from "../../csi/methods.ts";
import { csiNodes } from "../../kube/api/csi-node.ts";
import { nodes } from "../../kube/api/node.ts";
import type { Client } from "../../kube/client/client.ts";
import { createInformer } from "../../kube/informer/informer.ts";
import { SimCore } from "../../sim/core.ts";
import { HANDLER_ALONE } from "../../sim/server.ts";
import { createCsiDrivers } from "../plugins/csi-drivers.ts";
import { createCsiNodeWriter } from "./csi-node-writer.ts";
import { driversOf } from "./csi-node.ts";
import { createOwnObjects } from "./own-objects.ts";
import { createRegistrar, type RegistrarOptions } from "./registrar.ts";
import type { SocketWatch } from "./sockets.ts";

/** What a driver says of itself and of the node; fields a test changes while it runs. */
export interface FakePlugin {
  type: string;
  name: string;
  versions: string[];
  endpoint: string;
  nodeId: string;
  maxVolumes: bigint;
  topology: Record<string, string>;
  /** Answer of NodeGetInfo. */
  infoFails: boolean;
  notifyFails: boolean;
  /** What it was told: "registered" or the error. */
  readonly told: string[];
  infos: number;
}

export function plugin(fields: Partial<FakePlugin> = {}): FakePlugin {
  return {
    type: "CSIPlugin",
    name: "d",
    versions: ["1.0.0"],
    endpoint: "/csi/d.sock",
    nodeId: "id-1",
    maxVolumes: 0n,
    topology: {},
    infoFails: false,
    notifyFails: false,
    told: [],
    infos: 0,
    ...fields,
  };
}

/** Node `n1` on the embedded API server, sockets by hand, drivers in memory. */
export async function givenRegistrar(
  options: RegistrarOptions & {
    readonly inUse?: readonly string[];
    readonly behaves?: (client: Client) => Client;
  } = {},
) {
  const core = new SimCore(1, { server: HANDLER_ALONE });
  await core.server.start();
  const { scheduler, clock, random } = core;
  const logs: string[] = [];
  const log = createLogger((level, message, fields) =>
    logs.push(`${level} ${message} ${JSON.stringify(fields)}`),
  );
  await core.client.create(nodes, { metadata: { name: "n1" } });
  const client = options.behaves?.(core.client) ?? core.client;
  const sockets = createHandSockets();
  const byAddress = new Map<string, FakePlugin>();
  const connect = (address: string): Channel => {
    const found = byAddress.get(address);
    return createMemoryChannel({ clock, log }, found ? served(found) : []);
  };
  const periods = new Map<string, number>();
  const drivers = createCsiDrivers({ clock, connect });
  const csiNode = createCsiNodeWriter({ client, clock, random, log, nodeName: "n1" });
  const node = createInformer(
    { client, clock, random, log },
    { resource: nodes, fieldSelector: "metadata.name=n1" },
  );
  const seen = createOwnObjects({ client, clock, random, log, node }, { nodeName: "n1" });
  const registrar = createRegistrar(
    {
      clock,
      random,
      seen,
      log,
      sockets: sockets.watch,
      connect,
      drivers,
      csiNode,
      allocatablePeriodMsOf: (name) => periods.get(name),
      driverInUse: (name) => options.inUse?.includes(name) ?? false,
    },
    options,
  );
  const stop = new AbortController();
  const running = Promise.all([registrar.run(stop.signal), node.run(stop.signal), seen.run(stop.signal)]);

  return {
    registrar,
    drivers,
    csiNode,
    periods,
    logs,
    scheduler,
    client: core.client,
    /** Something listens there from now on, and its registration socket appears or is made anew. */
    async appears(path: string, one: FakePlugin) {
      byAddress.set(path, one);
      byAddress.set(one.endpoint, one);
      sockets.add(path);
      await scheduler.runFor(300);
    },
    async vanishes(path: string) {
      sockets.remove(path);
      await scheduler.runFor(300);
    },
    async entries() {
      return driversOf(await core.client.get(csiNodes, { name: "n1" })).map(
        ({ name, nodeID, topologyKeys, allocatable }) => ({
          name,
          nodeID,
          ...(topologyKeys?.length ? { topologyKeys } : {}),
          ...(allocatable ? { count: allocatable.count } : {}),
        }),
      );
    },
    node: () => core.client.get(nodes, { name: "n1" }),
    csiNodeObject: () => core.client.get(csiNodes, { name: "n1" }),
    async stop() {
      stop.abort();
      await running;
    },
  };
}

function served(one: FakePlugin): ServedMethod[] {
  return [
    ...serve(Registration, {
      getInfo: async () => ({
        type: one.type,
        name: one.name,
        endpoint: one.endpoint,
        supportedVersions: one.versions,
      }),
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        one.told.push(pluginRegistered ? "registered" : error);
        if (one.notifyFails) throw new CsiError("INTERNAL", "busy");
        return {};
      },
    }),
    ...serve(Node, {
      nodeGetInfo: async () => {
        one.infos++;
        if (one.infoFails) throw new CsiError("INTERNAL", "not now");
        const { nodeId, maxVolumes: maxVolumesPerNode, topology: segments } = one;
        return { nodeId, maxVolumesPerNode, accessibleTopology: { segments } };
      },
    }),
  ];
}

function createHandSockets() {
  const sockets = new Map<string, string>();
  let tell: () => void = () => undefined;
  let made = 0;
  const watch: SocketWatch = {
    run: (onSockets, signal) =>
      new Promise((resolve) => {
        tell = () => onSockets(new Map(sockets));
        tell();
        signal.addEventListener("abort", () => resolve(), { once: true });
      }),
  };
  return {
    watch,
    add(path: string) {
      sockets.set(path, `identity-${++made}`);
      tell();
    },
    remove(path: string) {
      sockets.delete(path);
      tell();
    },
  };
}
