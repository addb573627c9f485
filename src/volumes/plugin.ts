import type { NodeName, VolumeName } from "./names.ts";
import type { VolumeSpec } from "./spec.ts";

/**
 * How one kind of volume is attached to a machine and taken off it. Plugins know nothing of pods, safety or
 * back-off: whoever calls has decided that it may be done.
 */
export interface AttachablePlugin {
  /** `kubernetes.io/csi`: what stands before the volume's name. */
  readonly name: string;
  canSupport(spec: VolumeSpec): boolean;
  /** Whether such a volume has to be attached before it can be mounted. */
  needsAttach(spec: VolumeSpec): boolean;
  /** What the plugin calls this volume; undefined where a field it needs is missing or empty. */
  volumeName(spec: VolumeSpec): string | undefined;
  /** Label of metrics: the plugin, with the driver where one plugin serves many. */
  metricName(spec: VolumeSpec | undefined): string;
  /** Resolves with the device path, "" where only the node learns it. Rejects with what people should read. */
  attach(request: AttachRequest): Promise<string>;
  /** Resolves once the volume is certainly off the node. */
  detach(request: DetachRequest): Promise<void>;
  /** What the cached world says right now; `unknown` where there is nothing to ask. */
  verify(request: VerifyRequest): Verdict | Promise<Verdict>;
}

export type Verdict = "attached" | "not-attached" | "unknown";

export interface AttachRequest {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec;
  readonly node: NodeName;
  readonly signal: AbortSignal;
  /** Called once the request is with the driver, where the plugin can tell. */
  readonly onAccepted?: () => void;
}

export interface DetachRequest {
  readonly volume: VolumeName;
  /** What stands behind the plugin's name in `volume`. */
  readonly pluginVolume: string;
  readonly node: NodeName;
  readonly signal: AbortSignal;
  /** The one version of what stands for the attachment that may be removed: of a later one other things are true. */
  readonly onlyVersion?: string | undefined;
  /** Called once the request is with the driver, where the plugin can tell. */
  readonly onAccepted?: () => void;
}

export interface VerifyRequest {
  readonly volume: VolumeName;
  readonly spec: VolumeSpec | undefined;
  readonly node: NodeName;
}
