import type { Pod } from "../kube/api/pod.ts";
import type { VolumeName } from "../volumes/names.ts";
import type { VolumeSpec } from "../volumes/spec.ts";
import type { NodePlugin } from "./plugin.ts";
import type { WaitingFor } from "./waiting.ts";

/**
 * What is known on this node: pods and what each wants, volumes and what is there of them. One record a volume holds
 * both sides, so that a look at one volume reads one object. `desired.ts` and `actual.ts` change it, `plan.ts` reads it.
 */
export class World {
  readonly volumes = new Map<VolumeName, VolumeState>();
  readonly pods = new Map<string, PodRecord>();
  /** Uids of pods that asked for objects which have not come yet. */
  readonly loading = new Set<string>();
  /** By object, as `references.ts` spells it: uids of pods that follow it. */
  readonly followers = new Map<string, Set<string>>();
  /** By pod uid: volumes wanted or held for it. Bound: what pods of this node name. */
  readonly #ofPod = new Map<string, Set<VolumeState>>();

  /** By pod uid: namespace and name of those whose volumes are here, also when the pod itself is gone. */
  readonly #podNames = new Map<string, string>();

  /** For people. */
  podName(podUid: string): string {
    return `pod ${this.#podNames.get(podUid) ?? podUid}`;
  }

  volume(name: VolumeName, plugin: NodePlugin): VolumeState {
    const known = this.volumes.get(name);
    if (known) return known;
    const state: VolumeState = {
      name,
      plugin,
      wants: new Map(),
      held: undefined,
      running: [],
      late: [],
      waits: new Map(),
      blockers: new Map(),
      detaching: false,
    };
    this.volumes.set(name, state);
    return state;
  }

  volumesOf(podUid: string): Iterable<VolumeState> {
    return this.#ofPod.get(podUid) ?? [];
  }

  link(podUid: string, volume: VolumeState): void {
    const known = this.#ofPod.get(podUid);
    if (known) known.add(volume);
    else this.#ofPod.set(podUid, new Set([volume]));
    const { namespace, name } = this.pods.get(podUid)?.pod.metadata ?? {};
    if (name !== undefined) this.#podNames.set(podUid, `${namespace ?? ""}/${name}`);
  }

  /** After something went: drops what neither is wanted nor there nor at work. True where the volume itself went. */
  tidy(volume: VolumeState, podUid?: string): boolean {
    if (podUid !== undefined && !volume.wants.has(podUid) && !volume.held?.mounts.has(podUid)) {
      volume.waits.delete(podUid);
      const rest = this.#ofPod.get(podUid);
      rest?.delete(volume);
      if (rest?.size === 0) {
        this.#ofPod.delete(podUid);
        this.#podNames.delete(podUid);
      }
    }
    if (volume.wants.size > 0 || volume.held || volume.running.length > 0 || volume.late.length > 0)
      return false;
    return this.volumes.delete(volume.name);
  }
}

export interface VolumeState {
  readonly name: VolumeName;
  readonly plugin: NodePlugin;
  /** By pod uid: who should have it. */
  readonly wants: Map<string, Want>;
  /** What is, or may be, there. Undefined: not attached as far as this node knows, and certainly nothing mounted. */
  held: Held | undefined;
  /** Under way. At most one that wants the volume for itself, or one a pod. */
  running: readonly Running[];
  /** Calls that a driver may be at still although nobody waits for their answer. */
  late: readonly LateCall[];
  /** By pod uid, "" for the volume itself: why nothing happens. */
  readonly waits: Map<string, WaitingFor>;
  /** By pod uid, "" for the step once a node: what the last failure waits for, as keys of `blockers.ts`. */
  readonly blockers: Map<string, readonly string[]>;
  /** The last mount was refused because its VolumeAttachment is being deleted: see `planGivingWay`. */
  detaching: boolean;
}

export type VolumeMode = "Filesystem" | "Block";

export interface Want {
  readonly podUid: string;
  pod: Pod;
  spec: VolumeSpec;
  readonly mode: VolumeMode;
  /** `pod.spec.volumes[].name`: several may lead to one volume. */
  outerNames: readonly string[];
  /** In the clock's `now()`. */
  readonly sinceMs: number;
  /** How far this pod lets it grow now, by its PersistentVolume and its claim; 0 where it does not. */
  sizeBytes: number;
  /** With which SELinux label it is to be mounted for this pod; "" for none. Stays once the pod has it. */
  selinuxLabel: string;
  /** The pod has it, but its claim or PersistentVolume says something else since: see `replaced.ts`. */
  replaced?: string;
}

export type DeviceState = "not-mounted" | "uncertain" | "mounted";

export interface Held {
  spec: VolumeSpec;
  readonly mode: VolumeMode;
  /** `uncertain`: found after a restart, and the node's status has not been read yet. */
  attachable: "yes" | "no" | "uncertain";
  devicePath: string;
  device: DeviceState;
  /** Device mount path, or global map path of a block volume; "" until there is one. */
  deviceMountPath: string;
  /** Found after a restart: a failure of its step proves nothing. */
  readonly reconstructed: boolean;
  /** A directory found after a restart that nobody could make sense of: `spec` is only its name. */
  readonly unknown: boolean;
  /** What it has been grown to: by the claim's status at first, then by what was done here; 0 while neither says. */
  sizeBytes: number;
  /** The driver refused to expand it while it is in use; not asked again while it is mounted here. */
  expansionRefused: boolean;
  /** An attempt to expand it certainly failed. */
  expansionFailed: boolean;
  /** Of what is mounted; `mountedLabel` knows when that is nothing. */
  selinuxLabel: string;
  readonly mounts: Map<string, PodMount>;
}

/** Whether something of it is, or may be, staged or in a pod. */
export function isHere({ device, mounts }: Held): boolean {
  return device !== "not-mounted" || mounts.size > 0;
}

/** Objects by uid; "" where nobody says. */
export interface VolumeIdentity {
  readonly volumeUid: string;
  readonly claimUid: string;
}

export interface PodMount {
  readonly podUid: string;
  spec: VolumeSpec;
  /** Which of the pod's volumes it is; empty where it was found without a word on that. */
  outerNames: readonly string[];
  /** Of the objects that led to it when it was mounted. */
  readonly identity: VolumeIdentity;
  readonly specName: string;
  /** Uncertain: may be there or not, so the pod may not use it and it has to be torn down. */
  state: "mounted" | "uncertain";
  reconstructed: boolean;
  /** Set-up should be repeated to refresh what the pod sees. */
  remountRequired: boolean;
  /** Where the pod finds it: mount path, or the device of a block volume. */
  path: string;
  /** Whether the container runtime has to relabel its files; false where it is mounted with a context. */
  selinuxRelabel: boolean;
}

export type OperationName =
  | "mount_device"
  | "volume_mount"
  | "map_device"
  | "map_volume"
  | "volume_unmount"
  | "unmap_volume"
  | "unmount_device"
  | "unmap_device"
  | "volume_fs_resize"
  | "volume_attach"
  | "volume_detach";

export interface Running {
  readonly operation: OperationName;
  /** Undefined: the whole volume. */
  readonly podUid: string | undefined;
  /** Whether nothing else of this volume may run beside it. */
  readonly exclusive: boolean;
  readonly sinceMs: number;
  /** Aborts when no pod wants what it does any more: for what is only ours to end, never for a driver's call. */
  readonly abort: AbortController;
}

/** See `late-calls.ts`. */
export interface LateCall {
  readonly operation: OperationName;
  readonly podUid: string | undefined;
  /** In the clock's `now()`: counts as over then. */
  readonly untilMs: number;
}

/** A pod of this node, and where each of the volumes that a container uses leads. */
export interface PodRecord {
  readonly uid: string;
  pod: Pod;
  /** By outer name. */
  readonly references: Map<string, Reference>;
  /** Objects followed for its sake; released with it. */
  readonly follows: Map<string, () => void>;
}

export type Reference =
  | { readonly kind: "volume"; readonly volume: VolumeState }
  | {
      readonly kind: "unresolved";
      readonly message: string;
      readonly heals: boolean;
      readonly loading: boolean;
      readonly sinceMs: number;
    };
