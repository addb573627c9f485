import type { Clock } from "../base/clock.ts";
import { CsiError } from "../csi/errors.ts";
import {
  Controller,
  Identity,
  PluginCapability_Service_Type as Service,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapability,
  type VolumeContentSource,
} from "../csi/gen/csi_pb.ts";
import { serve, type ServedMethod } from "../csi/methods.ts";
import { controllerCapabilities, type ControllerAbility } from "./san-abilities.ts";
import { copyOf, newContent, type SanContent } from "./san-content.ts";
import { SanSnapshots, type SanSnapshot, type SnapshotSource } from "./san-snapshots.ts";
import type { Storages, StoredVolume } from "./storage.ts";

export const SAN_DRIVER = "san.csi.example.com";

/** A disk of the storage system. */
export interface SanVolume extends StoredVolume, SanContent {
  readonly name: string;
  sizeBytes: bigint;
  readonly publishedOn: Map<string, { readonly readonly: boolean }>;
  /** An operator looks after it: nobody else deletes it. */
  byOperator: boolean;
  readonly source: VolumeContentSource | undefined;
}

interface NewDisk extends Pick<SanVolume, "name" | "sizeBytes" | "shared"> {
  readonly byOperator?: boolean;
  readonly source?: VolumeContentSource | undefined;
}

export interface SanOptions {
  readonly poolBytes: bigint;
  /** What becomes of volumes is told there. */
  readonly storages: Storages;
  readonly clock: Clock;
  /** Told of every copy, of a volume or of a snapshot. */
  readonly onCopy: (from: string, to: string) => void;
}

const SHARED_MODES: ReadonlySet<Mode> = new Set([Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_READER_ONLY]);
const SIZE_BYTES_MIN = 1n << 20n;

/**
 * A storage system with disks that nodes reach over a network, and its CSI controller service. It does what it is asked,
 * also what would cost data, so that checkers see what others did and not what a clever backend prevented. It remembers for
 * ever: its driver's processes come and go.
 */
export class San implements SnapshotSource {
  readonly volumes = new Map<string, SanVolume>();
  readonly snapshots = new SanSnapshots(this);
  poolBytes: bigint;
  /** Somebody else has taken all that was left. */
  isFull = false;
  /** What its driver's present version cannot do; calls for it are refused. */
  readonly lacks = new Set<ControllerAbility>();
  /** How many disks one node may have at once, by its id. */
  volumesMaxOn: (nodeId: string) => number = () => Infinity;
  readonly clock: Clock;
  readonly onCopy: SanOptions["onCopy"];
  readonly #storages: Storages;
  #made = 0;

  constructor({ poolBytes, storages, clock, onCopy }: SanOptions) {
    this.poolBytes = poolBytes;
    this.#storages = storages;
    this.clock = clock;
    this.onCopy = onCopy;
  }

  /** The methods of its controller service. */
  serveController(): readonly ServedMethod[] {
    return [
      ...serveIdentity(),
      ...serve(Controller, {
        controllerGetCapabilities: async () => controllerCapabilities(this.lacks),
        createVolume: async ({ name, capacityRange, volumeCapabilities, volumeContentSource: source }) => {
          const there = [...this.volumes.values()].find((volume) => volume.name === name);
          const shared = isShared(volumeCapabilities);
          const sizeBytes = capacityRange?.requiredBytes ?? 0n;
          return { volume: answerOf(there ?? this.make({ name, sizeBytes, shared, source })) };
        },
        deleteVolume: async ({ volumeId }) => {
          const volume = this.volumes.get(volumeId);
          if (volume === undefined) return {};
          if (volume.publishedOn.size > 0)
            throw new CsiError("FAILED_PRECONDITION", `${volumeId} is published`);
          this.volumes.delete(volumeId);
          this.give(volume.sizeBytes);
          this.#storages.deleted(volume);
          return {};
        },
        controllerPublishVolume: async ({ volumeId, nodeId, readonly }) => {
          const volume = this.volume(volumeId);
          if (!volume.publishedOn.has(nodeId) && this.#countOn(nodeId) >= this.volumesMaxOn(nodeId))
            throw new CsiError("RESOURCE_EXHAUSTED", `${nodeId} has as many disks as it can`);
          volume.publishedOn.set(nodeId, { readonly });
          this.#storages.published(volume, nodeId);
          return { publishContext: { disk: `/dev/san-${volumeId}` } };
        },
        controllerUnpublishVolume: async ({ volumeId, nodeId }) => {
          const volume = this.volumes.get(volumeId);
          if (volume?.publishedOn.delete(nodeId) === true) this.#storages.unpublished(volume, nodeId);
          return {};
        },
        validateVolumeCapabilities: async ({ volumeId, volumeCapabilities }) => {
          this.volume(volumeId);
          return { confirmed: { volumeCapabilities } };
        },
        listVolumes: async () => {
          this.can("LIST_VOLUMES");
          const telling = !this.lacks.has("LIST_VOLUMES_PUBLISHED_NODES");
          return {
            entries: [...this.volumes.values()].map(({ handle, sizeBytes, publishedOn }) => ({
              volume: { volumeId: handle, capacityBytes: sizeBytes },
              status: { publishedNodeIds: telling ? [...publishedOn.keys()] : [] },
            })),
          };
        },
        ...this.snapshots.serve(),
        controllerExpandVolume: async ({ volumeId, capacityRange }) => {
          this.can("EXPAND_VOLUME");
          const volume = this.volume(volumeId);
          const wanted = capacityRange?.requiredBytes ?? 0n;
          if (wanted > volume.sizeBytes) {
            this.take(wanted - volume.sizeBytes);
            volume.sizeBytes = wanted;
          }
          return { capacityBytes: volume.sizeBytes, nodeExpansionRequired: true };
        },
      }),
    ];
  }

  volume(handle: string): SanVolume {
    const volume = this.volumes.get(handle);
    if (volume === undefined) throw new CsiError("NOT_FOUND", `volume ${handle} does not exist`);
    return volume;
  }

  can(ability: ControllerAbility): void {
    if (this.lacks.has(ability)) throw new CsiError("UNIMPLEMENTED", `this version has no ${ability}`);
  }

  /** A new disk, for the driver or for an operator at its console, who finds room also in a pool that is full. */
  make({ name, sizeBytes: wanted, shared, byOperator = false, source }: NewDisk): SanVolume {
    const sizeBytes = wanted > SIZE_BYTES_MIN ? wanted : SIZE_BYTES_MIN;
    const origin = source && this.#originOf(source);
    if (origin !== undefined && origin.sizeBytes > sizeBytes)
      throw new CsiError("OUT_OF_RANGE", `${name} would be smaller than what it is made of`);
    if (byOperator) this.poolBytes -= sizeBytes;
    else this.take(sizeBytes);
    const publishedOn: SanVolume["publishedOn"] = new Map();
    const volume: SanVolume = {
      driver: SAN_DRIVER,
      handle: handleOf(++this.#made),
      name,
      sizeBytes,
      shared,
      ...(origin === undefined ? newContent() : copyOf(origin)),
      ...{ publishedOn, byOperator, source },
      isReachedFrom: (nodeIds) => nodeIds.some((id) => publishedOn.has(id)),
    };
    this.volumes.set(volume.handle, volume);
    this.#storages.add(volume);
    if (origin !== undefined) this.onCopy(origin.handle, volume.handle);
    return volume;
  }

  #originOf({ type }: VolumeContentSource): SanVolume | SanSnapshot {
    this.can(type.case === "volume" ? "CLONE_VOLUME" : "CREATE_DELETE_SNAPSHOT");
    if (type.case === "volume") return this.volume(type.value.volumeId);
    const snapshot = type.case === "snapshot" ? this.snapshots.all.get(type.value.snapshotId) : undefined;
    if (snapshot === undefined) throw new CsiError("NOT_FOUND", "the snapshot does not exist");
    return snapshot;
  }

  #countOn(nodeId: string): number {
    return [...this.volumes.values()].filter(({ publishedOn }) => publishedOn.has(nodeId)).length;
  }

  take(sizeBytes: bigint): void {
    if (this.isFull || sizeBytes > this.poolBytes)
      throw new CsiError("RESOURCE_EXHAUSTED", "the pool is full");
    this.poolBytes -= sizeBytes;
  }

  give(sizeBytes: bigint): void {
    this.poolBytes += sizeBytes;
  }
}

function answerOf({ handle, sizeBytes, source }: SanVolume) {
  return { volumeId: handle, capacityBytes: sizeBytes, ...(source && { contentSource: source }) };
}

function isShared(capabilities: readonly VolumeCapability[]): boolean {
  return capabilities.some(({ accessMode }) => SHARED_MODES.has(accessMode?.mode ?? Mode.UNKNOWN));
}

/** Now and then with the sign that separates driver and handle in the name of a volume. */
function handleOf(number: number): string {
  return number % 4 === 0 ? `d${number}^${number}` : `d${number}`;
}

export function serveIdentity(): readonly ServedMethod[] {
  return serve(Identity, {
    getPluginInfo: async () => ({ name: SAN_DRIVER, vendorVersion: "1.0.0", manifest: {} }),
    getPluginCapabilities: async () => ({
      capabilities: [{ type: { case: "service" as const, value: { type: Service.CONTROLLER_SERVICE } } }],
    }),
    probe: async () => ({ ready: true }),
  });
}
