import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Clock } from "../base/clock.ts";
import { silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { CsiError } from "../csi/errors.ts";
import {
  Controller,
  GroupController,
  Identity,
  Node,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapabilitySchema,
} from "../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { createClient, type Client } from "../csi/methods.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createLoopDriver, type LoopDriver } from "./driver.ts";
import { createFakeHost, type FakeHost } from "./fake-host.testing.ts";
import type { Host } from "./host.ts";
import { MIB, type DriverOptions } from "./options.ts";

export const MINUTE = { timeoutMs: 60_000 };
export const STATE = "/state";

type Calls<S extends typeof Controller | typeof Node | typeof Identity | typeof GroupController> = {
  readonly [M in keyof Client<S>]: Client<S>[M] extends (request: infer R, options: never) => infer A
    ? (request: R) => A
    : never;
};

export interface Peer {
  readonly driver: LoopDriver;
  readonly identity: Calls<typeof Identity>;
  readonly controller: Calls<typeof Controller>;
  readonly node: Calls<typeof Node>;
  readonly group: Calls<typeof GroupController>;
}

/** A driver on some host, called over the wire format in memory. Not recovered yet. */
export function openPeer(
  host: Host,
  clock: Clock,
  options: Partial<DriverOptions> = {},
  seed = "driver",
): Peer {
  const driver = createLoopDriver(
    { host, clock, random: createSeededRandom(seed), log: silentLogger },
    { name: "loop.csi.mooring.dev", vendorVersion: "1", stateDir: STATE, nodeId: "node-1", ...options },
  );
  const channel = createMemoryChannel({ clock, log: silentLogger }, driver.methods);
  const bound = <S extends typeof Controller | typeof Node | typeof Identity | typeof GroupController>(
    service: S,
  ) => {
    const client = createClient(service, channel) as unknown as Record<
      string,
      (request: object, options: object) => unknown
    >;
    const calls = Object.entries(client).map(([name, call]) => [
      name,
      (request: object) => call(request, MINUTE),
    ]);
    return Object.fromEntries(calls) as Calls<S>;
  };
  return {
    driver,
    identity: bound(Identity),
    controller: bound(Controller),
    node: bound(Node),
    group: bound(GroupController),
  };
}

export interface World extends Peer {
  readonly host: FakeHost;
  readonly clock: Clock;
  readonly scheduler: SimScheduler;
  /** The same machine after the process has ended: a new driver, recovered. */
  restart(options?: Partial<DriverOptions>): Promise<World>;
}

export async function given(
  options: Partial<DriverOptions> = {},
  host: FakeHost = createFakeHost(),
): Promise<World> {
  const scheduler = new SimScheduler(createSeededRandom("clock"));
  const clock = scheduler.createClock();
  host.makePath("/kubelet/stage");
  host.makePath("/kubelet/pods");
  const peer = openPeer(host, clock, options, `driver ${restarts++}`);
  await peer.driver.recover();
  return { ...peer, host, clock, scheduler, restart: (next = options) => given(next, host) };
}

/** Ids are random and never reused, also after a restart. */
let restarts = 0;

export function mountCapability({
  mode = Mode.SINGLE_NODE_WRITER,
  fsType = "",
  mountFlags = [],
}: { mode?: Mode; fsType?: string; mountFlags?: string[] } = {}): MessageInitShape<
  typeof VolumeCapabilitySchema
> {
  return { accessMode: { mode }, accessType: { case: "mount", value: { fsType, mountFlags } } };
}

export function blockCapability(
  mode: Mode = Mode.SINGLE_NODE_WRITER,
): MessageInitShape<typeof VolumeCapabilitySchema> {
  return { accessMode: { mode }, accessType: { case: "block", value: {} } };
}

type Capability = MessageInitShape<typeof VolumeCapabilitySchema>;

/** A volume in one line; returns its id. */
export async function createdVolume(
  { controller }: Peer,
  name: string,
  {
    sizeBytes = 64n * MIB,
    capability = mountCapability(),
  }: { sizeBytes?: bigint; capability?: Capability } = {},
): Promise<string> {
  const { volume } = await controller.createVolume({
    name,
    volumeCapabilities: [capability],
    capacityRange: { requiredBytes: sizeBytes },
  });
  return volume?.volumeId ?? "";
}

export const STAGING = "/kubelet/stage";
export const TARGET = "/kubelet/pods/target";

/** Attached, staged and published. */
export async function published(
  peer: Peer,
  volumeId: string,
  {
    capability = mountCapability(),
    stagingTargetPath = STAGING,
    targetPath = TARGET,
    readonly = false,
  }: { capability?: Capability; stagingTargetPath?: string; targetPath?: string; readonly?: boolean } = {},
): Promise<void> {
  await staged(peer, volumeId, { capability, stagingTargetPath });
  await peer.node.nodePublishVolume({
    volumeId,
    stagingTargetPath,
    targetPath,
    volumeCapability: capability,
    readonly,
  });
}

export async function staged(
  peer: Peer,
  volumeId: string,
  {
    capability = mountCapability(),
    stagingTargetPath = STAGING,
  }: { capability?: Capability; stagingTargetPath?: string } = {},
): Promise<void> {
  await peer.controller.controllerPublishVolume({ volumeId, nodeId: "node-1", volumeCapability: capability });
  await peer.node.nodeStageVolume({ volumeId, stagingTargetPath, volumeCapability: capability });
}

/** Unpublished, unstaged and detached. */
export async function released(
  peer: Peer,
  volumeId: string,
  {
    stagingTargetPath = STAGING,
    targetPath = TARGET,
  }: { stagingTargetPath?: string; targetPath?: string } = {},
): Promise<void> {
  await peer.node.nodeUnpublishVolume({ volumeId, targetPath });
  await peer.node.nodeUnstageVolume({ volumeId, stagingTargetPath });
  await peer.controller.controllerUnpublishVolume({ volumeId, nodeId: "node-1" });
}

/** The code a call was answered with. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "OK";
  } catch (error) {
    if (error instanceof CsiError) return error.code;
    throw error;
  }
}
