import type { FsType } from "./host.ts";

export interface DriverOptions {
  readonly name: string;
  readonly vendorVersion: string;
  readonly stateDir: string;
  /** This machine's name for itself in the storage system. */
  readonly nodeId: string;
  /** Other nodes that may attach volumes of this pool; our own is always known. */
  readonly nodes?: readonly string[];
  /** Which services are answered; `all` is one process for both. */
  readonly serves?: "all" | "controller" | "node";
  readonly attach?: boolean;
  /** Volumes a node may hold; 0 for no limit. */
  readonly attachLimit?: number;
  readonly maxVolumeBytes?: bigint;
  readonly maxVolumeBytesNode?: bigint;
  readonly topology?: boolean;
  readonly controllerExpansion?: boolean;
  readonly nodeExpansion?: boolean;
  readonly modifyVolume?: boolean;
  /** Keys that ControllerModifyVolume takes; undefined for any. */
  readonly mutableParameterNames?: readonly string[] | undefined;
  readonly listSnapshots?: boolean;
  readonly volumeCondition?: boolean;
  /** The health calls after CSI 1.12. */
  readonly volumeHealth?: boolean;
  readonly snapshotMetadata?: boolean;
  readonly snapshotMetadataBlockType?: "FIXED_LENGTH" | "VARIABLE_LENGTH";
  /** Simulated pools by kind. */
  readonly capacity?: ReadonlyMap<string, bigint>;
  readonly defaultFsType?: FsType;
  readonly freezeMsMax?: number;
}

export type Settings = Required<Omit<DriverOptions, "mutableParameterNames">> &
  Pick<DriverOptions, "mutableParameterNames">;

export const MIB = 1_048_576n;
export const GIB = 1_073_741_824n;
export const DEFAULT_VOLUME_BYTES = 1n * GIB;
/** Of volumes that live as long as a pod. */
export const EPHEMERAL_VOLUME_BYTES = 100n * MIB;
/** The block size of every image; a device is a whole number of them. */
export const BLOCK_BYTES = 4_096n;

/** Below these mkfs refuses or leaves no room: xfs wants 300 MiB since xfsprogs 5.19. */
export const MIN_VOLUME_BYTES: Readonly<Record<FsType, bigint>> = { ext4: 16n * MIB, xfs: 300n * MIB };

export function withDefaults(options: DriverOptions): Settings {
  return {
    nodes: [],
    serves: "all",
    attach: true,
    attachLimit: 0,
    maxVolumeBytes: 1_024n * GIB,
    maxVolumeBytesNode: options.maxVolumeBytes ?? 1_024n * GIB,
    topology: true,
    controllerExpansion: true,
    nodeExpansion: true,
    modifyVolume: false,
    listSnapshots: true,
    volumeCondition: true,
    volumeHealth: false,
    snapshotMetadata: false,
    snapshotMetadataBlockType: "FIXED_LENGTH",
    capacity: new Map(),
    defaultFsType: "ext4",
    freezeMsMax: 10_000,
    ...options,
  };
}

/** The topology key of every volume and node of this driver. */
export function topologyKey({ name }: Pick<Settings, "name">): string {
  return `topology.${name}/node`;
}
