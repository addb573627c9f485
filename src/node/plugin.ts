import type { Pod } from "../kube/api/pod.ts";
import type { VolumeName } from "../volumes/names.ts";
import type { VolumeSpec } from "../volumes/spec.ts";

/**
 * How one kind of volume becomes a directory or a device of a pod, and how it goes away again. A plugin does what it is
 * told, once: state, order, exclusion, back-off and events are the caller's. Steps may be repeated after a crash at any
 * point, so each does nothing where its work is done already. Failures are VolumeErrors; what is not counts as final.
 *
 * Nothing here may change its arguments: specs and pods are objects of caches.
 */
export interface NodePlugin {
  /** `kubernetes.io/csi` */
  readonly name: string;
  canSupport(spec: VolumeSpec): boolean;
  /** What the plugin calls this volume; undefined where a field it needs is missing or empty. */
  volumeName(spec: VolumeSpec): string | undefined;
  /** From caches, at once; may change when a CSIDriver object does. */
  traits(spec: VolumeSpec): VolumeTraits;
  /** Label of metrics: the plugin, with the driver where one plugin serves many. */
  metricName(spec: VolumeSpec | undefined): string;

  /** Where the pod finds it: a mount point, a directory of its own, "" where the runtime mounts it itself (image). */
  mountPath(spec: VolumeSpec, podUid: string): string;
  setUp(request: SetUpRequest): Promise<MountAttributes>;
  tearDown(request: TearDownRequest): Promise<void>;

  /** The step once a node; present where some volume of this plugin is device-mountable. */
  readonly device?: DeviceSteps;
  /** Raw block volumes. */
  readonly block?: BlockSteps;
  readonly attach?: AttachSteps;
  expand?(request: ExpandRequest): Promise<void>;
  stats?(request: StatsRequest): Promise<VolumeStats>;

  /** What a directory found after a restart is: `undefined` where the plugin cannot tell. */
  reconstruct(found: FoundVolume): Promise<Reconstructed | undefined>;
  /** Volumes that are staged on this node, whether or not a pod directory names them. */
  findStaged?(): Promise<readonly StagedVolume[]>;
}

export interface VolumeTraits {
  /** `unknown`: cannot be said yet, so it is treated as if it had to be. */
  readonly attachable: "yes" | "no" | "unknown";
  readonly deviceMountable: boolean;
  /** Set-up is repeated to refresh what the pod sees. */
  readonly requiresRemount: boolean;
  readonly mountOptions: boolean;
  readonly selinuxMount: boolean;
  readonly expandable: boolean;
}

export interface MountAttributes {
  readonly readOnly: boolean;
  /** Whether fsGroup is ours to apply. */
  readonly managed: boolean;
  readonly selinuxRelabel: boolean;
}

interface PodStep {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec;
  readonly pod: Pod;
  readonly podUid: string;
  readonly signal: AbortSignal;
}

export interface SetUpRequest extends PodStep {
  /** Aborts when the pod no longer wants it: for work of ours, never for a call to a driver, which may go on unseen. */
  readonly unwanted?: AbortSignal;
  readonly devicePath: string;
  /** Of the step once a node; "" where there is none. */
  readonly deviceMountPath: string;
  /** The user all containers run as, where they agree. */
  readonly fsUser?: number | undefined;
  readonly fsGroup?: number | undefined;
  readonly fsGroupChangePolicy?: string | undefined;
  readonly sizeLimitBytes?: number | undefined;
  readonly selinuxLabel?: string | undefined;
  /** An earlier attempt may have worked, or it was found after a restart: a failure must leave what is there. */
  readonly mayBeThere: boolean;
  /** It is mounted already and only refreshed. */
  readonly isRemount: boolean;
}

export interface TearDownRequest {
  readonly volume: VolumeName;
  readonly podUid: string;
  readonly specName: string;
  /** As it was when set up or reconstructed; undefined for a directory nobody could make sense of. */
  readonly spec: VolumeSpec | undefined;
  readonly signal: AbortSignal;
}

export interface DeviceSteps {
  mountPath(spec: VolumeSpec): string;
  mount(request: MountDeviceRequest): Promise<void>;
  unmount(request: UnmountDeviceRequest): Promise<void>;
  /** Whether its driver stages volumes by now, and did not when this one was set up. */
  isUnstaged?(spec: VolumeSpec, signal: AbortSignal): Promise<boolean>;
}

export interface MountDeviceRequest {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec;
  readonly pod: Pod;
  readonly devicePath: string;
  readonly deviceMountPath: string;
  readonly fsGroup?: number | undefined;
  readonly selinuxLabel?: string | undefined;
  readonly mayBeThere: boolean;
  readonly signal: AbortSignal;
}

export interface UnmountDeviceRequest {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec | undefined;
  readonly deviceMountPath: string;
  readonly devicePath: string;
  readonly signal: AbortSignal;
}

export interface AttachSteps {
  /** Called once the node's status lists the volume. Answers with the device path as the later steps want it. */
  waitForAttach(
    request: PodStep & { readonly devicePath: string; readonly timeoutMs: number },
  ): Promise<string>;
  /** Where the node attaches for itself: answers with the device path, "" where waiting for it finds it. May be repeated. */
  attach?(request: PodStep): Promise<string>;
  /** Undoes it, once nothing of the volume is mounted. May be repeated. */
  detach?(request: {
    readonly volume: VolumeName;
    readonly spec: VolumeSpec;
    readonly signal: AbortSignal;
  }): Promise<void>;
  /** Whether an attach of this volume failed because the node is full; refreshes what the node says it can take. */
  limitReached?(spec: VolumeSpec, signal: AbortSignal): Promise<boolean>;
}

export interface BlockSteps {
  /** Directory with one device file a pod. */
  globalMapPath(spec: VolumeSpec): string;
  /** Directory of the symbolic link the pod sees, and its name. */
  podDeviceMap(spec: VolumeSpec, podUid: string): { readonly directory: string; readonly name: string };
  /** Where it is staged; "" for a plugin that stages none. For expansion. */
  stagingPath(spec: VolumeSpec): string;
  /** Once a node, where the plugin maps devices itself. */
  setUpDevice?(request: BlockDeviceRequest): Promise<void>;
  /** For one pod; answers with the device path. */
  mapPodDevice?(
    request: PodStep & { readonly devicePath: string; readonly mayBeThere: boolean },
  ): Promise<string>;
  unmapPodDevice?(request: TearDownRequest): Promise<void>;
  tearDownDevice?(request: TearDownDeviceRequest): Promise<void>;
  /** As in `DeviceSteps`. */
  isUnstaged?(spec: VolumeSpec, signal: AbortSignal): Promise<boolean>;
}

export interface BlockDeviceRequest extends PodStep {
  readonly devicePath: string;
  readonly mayBeThere: boolean;
}

export interface TearDownDeviceRequest {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec | undefined;
  readonly specName: string;
  readonly globalMapPath: string;
  readonly devicePath: string;
  readonly signal: AbortSignal;
}

export interface ExpandRequest {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec;
  /** The pod's mount path, or the device for a block volume. */
  readonly volumePath: string;
  readonly stagingPath: string;
  readonly devicePath: string;
  readonly newSizeBytes: number;
  readonly oldSizeBytes: number;
  readonly signal: AbortSignal;
}

export interface StatsRequest {
  readonly spec: VolumeSpec;
  readonly podUid: string;
  readonly volumePath: string;
  readonly signal: AbortSignal;
}

/** Undefined members are not known. */
export interface VolumeStats {
  readonly capacityBytes?: number;
  readonly availableBytes?: number;
  readonly usedBytes?: number;
  readonly inodes?: number;
  readonly inodesFree?: number;
  readonly inodesUsed?: number;
}

/** A directory below `pods/<uid>/volumes` or a link below `pods/<uid>/volumeDevices`. */
export interface FoundVolume {
  readonly podUid: string;
  readonly specName: string;
  readonly mode: "Filesystem" | "Block";
  readonly path: string;
}

export interface Reconstructed {
  readonly spec: VolumeSpec;
  readonly selinuxLabel?: string;
}

/** Found by what is below `plugins/`, after a restart. */
export interface StagedVolume {
  readonly volume: VolumeName;
  /** As much of it as the records tell. */
  readonly spec: VolumeSpec;
  readonly mode: "Filesystem" | "Block";
  /** Device mount path, or global map path for a block volume. */
  readonly path: string;
  /** Mounted with this context; without one where undefined. */
  readonly selinuxLabel?: string;
}
