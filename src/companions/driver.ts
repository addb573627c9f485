import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import { createCapabilities } from "../csi/capabilities.ts";
import { isCsiError } from "../csi/errors.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as Rpc,
  Identity,
  PluginCapability_Service_Type as Service,
} from "../csi/gen/csi_pb.ts";
import { createClient, type CallOptions, type Channel, type Client } from "../csi/methods.ts";

/** A driver's controller service, once it has introduced itself. */
export interface StorageDriver {
  /** Classes, volumes and snapshots that name this are ours; all others are left alone. */
  readonly name: string;
  readonly controller: Client<typeof Controller>;
  /** As of the connection there is: behind a new one there may be another version of the driver. */
  can(signal: AbortSignal): Promise<DriverAbilities>;
}

export interface DriverAbilities {
  readonly createsVolumes: boolean;
  readonly clones: boolean;
  readonly expands: boolean;
  readonly snapshots: boolean;
  readonly listsSnapshots: boolean;
  readonly topology: boolean;
  readonly singleNodeMultiWriter: boolean;
}

/** A copy of an image may take this long; a call that takes longer goes on in the driver and is asked for again. */
export const CALL_TIMEOUT_MS = 60_000;
/** A driver answers who it is from memory. */
const INTRODUCTION_MS = 5_000;
const INTRODUCTION_PAUSE_MS = 500;

export interface DriverDeps {
  readonly channel: Channel;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Waits for the driver to be ready, however long that takes. */
export async function introduceDriver(deps: DriverDeps, signal: AbortSignal): Promise<StorageDriver> {
  const { channel, clock, log } = deps;
  const identity = createClient(Identity, channel);
  const options = { timeoutMs: INTRODUCTION_MS, signal };
  for (let told = false; ; told = true) {
    try {
      if ((await identity.probe({}, options)).ready !== false) {
        const { name } = await identity.getPluginInfo({}, options);
        if (name !== "") return createStorageDriver(deps, name);
      }
    } catch (error) {
      if (signal.aborted || !isCsiError(error)) throw error;
      if (!told) log.info("waiting for the driver to answer", { error });
    }
    await clock.sleep(INTRODUCTION_PAUSE_MS, signal);
  }
}

function createStorageDriver({ channel, metrics }: DriverDeps, name: string): StorageDriver {
  const capabilities = createCapabilities(channel);
  return {
    name,
    controller: counted(createClient(Controller, channel), metrics),
    async can(signal) {
      const options: CallOptions = { timeoutMs: INTRODUCTION_MS, signal };
      const { services } = await capabilities.plugin(options);
      const rpcs = services.has(Service.CONTROLLER_SERVICE)
        ? await capabilities.controller(options)
        : new Set<Rpc>();
      return {
        createsVolumes: rpcs.has(Rpc.CREATE_DELETE_VOLUME),
        clones: rpcs.has(Rpc.CLONE_VOLUME),
        expands: rpcs.has(Rpc.EXPAND_VOLUME),
        snapshots: rpcs.has(Rpc.CREATE_DELETE_SNAPSHOT),
        listsSnapshots: rpcs.has(Rpc.LIST_SNAPSHOTS),
        topology: services.has(Service.VOLUME_ACCESSIBILITY_CONSTRAINTS),
        singleNodeMultiWriter: rpcs.has(Rpc.SINGLE_NODE_MULTI_WRITER),
      };
    },
  };
}

/** The same calls, each counted by how it ended. */
function counted(client: Client<typeof Controller>, metrics: Metrics): Client<typeof Controller> {
  const calls = metrics.counter({
    name: "mooring_storage_driver_calls_total",
    help: "Calls of the storage companions to the driver, by call and gRPC code.",
    labels: ["call", "code"],
  });
  const wrapped = Object.entries(client as Record<string, (...args: never[]) => Promise<unknown>>).map(
    ([call, send]) => [
      call,
      async (...args: never[]) => {
        try {
          const answer = await send(...args);
          calls.inc({ call, code: "OK" });
          return answer;
        } catch (error) {
          calls.inc({ call, code: isCsiError(error) ? error.code : "UNKNOWN" });
          throw error;
        }
      },
    ],
  );
  return Object.fromEntries(wrapped) as Client<typeof Controller>;
}
