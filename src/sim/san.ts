import { CsiError } from "../csi/errors.ts";
import {
  Controller,
  ControllerServiceCapability_RPC_Type as Rpc,
  Identity,
  PluginCapability_Service_Type as Service,
  VolumeCapability_AccessMode_Mode as Mode,
  type VolumeCapability,
} from "../csi/gen/csi_pb.ts";
import { serve, type ServedMethod } from "../csi/methods.ts";
import type { Filesystem } from "../node/memory/tree.ts";
import type { Storages, StoredVolume } from "./storage.ts";

export const SAN_DRIVER = "san.csi.example.com";

/** A disk of the storage system. */
export interface SanVolume extends StoredVolume {
  readonly name: string;
  sizeBytes: bigint;
  /** What is on it; undefined while it is blank. */
  content: Pick<Filesystem, "root" | "type" | "unsynced"> | undefined;
  /** Of one that is used without a filesystem. */
  readonly blocks: Map<string, string>;
  /** Of all nodes together, as if their kernels shared one cache. */
  readonly unsyncedBlocks: Map<string, string>;
  readonly publishedOn: Map<string, { readonly readonly: boolean }>;
}

interface NewDisk extends Pick<SanVolume, "name" | "sizeBytes" | "shared"> {
  readonly byOperator?: boolean;
}

export interface SanOptions {
  readonly poolBytes: bigint;
  /** What becomes of volumes is told there. */
  readonly storages: Storages;
}

const SHARED_MODES: ReadonlySet<Mode> = new Set([Mode.MULTI_NODE_MULTI_WRITER, Mode.MULTI_NODE_READER_ONLY]);
const SIZE_BYTES_MIN = 1n << 20n;

/**
 * A storage system with disks that nodes reach over a network, and its CSI controller service. It does what it is asked,
 * also what would cost data, so that checkers see what others did and not what a clever backend prevented. It remembers for
 * ever: its driver's processes come and go.
 */
export class San {
  readonly volumes = new Map<string, SanVolume>();
  poolBytes: bigint;
  /** Somebody else has taken all that was left. */
  isFull = false;
  /** How many disks one node may have at once, by its id. */
  volumesMaxOn: (nodeId: string) => number = () => Infinity;
  readonly #storages: Storages;
  #made = 0;

  constructor({ poolBytes, storages }: SanOptions) {
    this.poolBytes = poolBytes;
    this.#storages = storages;
  }

  /** The methods of its controller service. */
  serveController(): readonly ServedMethod[] {
    return [
      ...serveIdentity(),
      ...serve(Controller, {
        controllerGetCapabilities: async () => ({
          capabilities: CAPABILITIES.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
        }),
        createVolume: async ({ name, capacityRange, volumeCapabilities }) => {
          const there = [...this.volumes.values()].find((volume) => volume.name === name);
          const shared = isShared(volumeCapabilities);
          const volume = there ?? this.make({ name, sizeBytes: capacityRange?.requiredBytes ?? 0n, shared });
          return { volume: { volumeId: volume.handle, capacityBytes: volume.sizeBytes } };
        },
        deleteVolume: async ({ volumeId }) => {
          const volume = this.volumes.get(volumeId);
          if (volume === undefined) return {};
          if (volume.publishedOn.size > 0)
            throw new CsiError("FAILED_PRECONDITION", `${volumeId} is published`);
          this.volumes.delete(volumeId);
          this.poolBytes += volume.sizeBytes;
          this.#storages.deleted(volume);
          return {};
        },
        controllerPublishVolume: async ({ volumeId, nodeId, readonly }) => {
          const volume = this.#volume(volumeId);
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
          this.#volume(volumeId);
          return { confirmed: { volumeCapabilities } };
        },
        listVolumes: async () => ({
          entries: [...this.volumes.values()].map(({ handle, sizeBytes, publishedOn }) => ({
            volume: { volumeId: handle, capacityBytes: sizeBytes },
            status: { publishedNodeIds: [...publishedOn.keys()] },
          })),
        }),
        controllerExpandVolume: async ({ volumeId, capacityRange }) => {
          const volume = this.#volume(volumeId);
          const wanted = capacityRange?.requiredBytes ?? 0n;
          if (wanted > volume.sizeBytes) {
            this.#take(wanted - volume.sizeBytes);
            volume.sizeBytes = wanted;
          }
          return { capacityBytes: volume.sizeBytes, nodeExpansionRequired: true };
        },
      }),
    ];
  }

  #volume(handle: string): SanVolume {
    const volume = this.volumes.get(handle);
    if (volume === undefined) throw new CsiError("NOT_FOUND", `volume ${handle} does not exist`);
    return volume;
  }

  /** A new disk, for the driver or for an operator at its console, who finds room also in a pool that is full. */
  make({ name, sizeBytes: wanted, shared, byOperator = false }: NewDisk): SanVolume {
    const sizeBytes = wanted > SIZE_BYTES_MIN ? wanted : SIZE_BYTES_MIN;
    if (byOperator) this.poolBytes -= sizeBytes;
    else this.#take(sizeBytes);
    const publishedOn: SanVolume["publishedOn"] = new Map();
    const volume: SanVolume = {
      driver: SAN_DRIVER,
      handle: handleOf(++this.#made),
      name,
      sizeBytes,
      shared,
      content: undefined,
      blocks: new Map(),
      unsyncedBlocks: new Map(),
      publishedOn,
      isReachedFrom: (nodeIds) => nodeIds.some((id) => publishedOn.has(id)),
    };
    this.volumes.set(volume.handle, volume);
    this.#storages.add(volume);
    return volume;
  }

  #countOn(nodeId: string): number {
    return [...this.volumes.values()].filter(({ publishedOn }) => publishedOn.has(nodeId)).length;
  }

  #take(sizeBytes: bigint): void {
    if (this.isFull || sizeBytes > this.poolBytes)
      throw new CsiError("RESOURCE_EXHAUSTED", "the pool is full");
    this.poolBytes -= sizeBytes;
  }
}

function isShared(capabilities: readonly VolumeCapability[]): boolean {
  return capabilities.some(({ accessMode }) => SHARED_MODES.has(accessMode?.mode ?? Mode.UNKNOWN));
}

/** Now and then with the sign that separates driver and handle in the name of a volume. */
function handleOf(number: number): string {
  return number % 4 === 0 ? `d${number}^${number}` : `d${number}`;
}

const CAPABILITIES = [
  Rpc.CREATE_DELETE_VOLUME,
  Rpc.PUBLISH_UNPUBLISH_VOLUME,
  Rpc.LIST_VOLUMES,
  Rpc.LIST_VOLUMES_PUBLISHED_NODES,
  Rpc.EXPAND_VOLUME,
  Rpc.PUBLISH_READONLY,
];

export function serveIdentity(): readonly ServedMethod[] {
  return serve(Identity, {
    getPluginInfo: async () => ({ name: SAN_DRIVER, vendorVersion: "1.0.0", manifest: {} }),
    getPluginCapabilities: async () => ({
      capabilities: [{ type: { case: "service" as const, value: { type: Service.CONTROLLER_SERVICE } } }],
    }),
    probe: async () => ({ ready: true }),
  });
}
