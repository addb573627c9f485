import type { PersistentVolumeSpec, Volume } from "kubernetes-types/core/v1.js";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import { text } from "./untrusted.ts";

/**
 * What a pod's volume turns out to be, once its claim is followed: a volume written into the pod, or a
 * PersistentVolume. In-tree sources that have a CSI driver are translated before anybody sees them.
 *
 * The PersistentVolume is the one of the moment of resolving; a later change of it does not reach a spec that
 * is stored somewhere.
 */
export type VolumeSpec = InlineSpec | PersistentSpec;

export interface InlineSpec {
  readonly kind: "inline";
  readonly volume: Volume;
}

export interface PersistentSpec {
  readonly kind: "persistent";
  readonly volume: PersistentVolume;
  /** From the pod's claim source. */
  readonly readOnly: boolean;
  /**
   * `none`: as it is in the API. `volume`: an in-tree PersistentVolume of that name exists there. `inline`: it was
   * written into a pod, so no PersistentVolume exists and its name is made up.
   */
  readonly migrated: "none" | "volume" | "inline";
}

/** What people call it: the name in the pod, or that of the PersistentVolume. Event texts use it. */
export function specName(spec: VolumeSpec): string {
  return text(spec.kind === "inline" ? spec.volume.name : spec.volume.metadata.name);
}

export type CsiSource = NonNullable<PersistentVolumeSpec["csi"]>;

/**
 * The CSI source of a PersistentVolume, where it names driver and volume. An inline `csi` volume is ephemeral: it
 * has none that could be attached.
 */
export function csiSourceOf(spec: VolumeSpec): CsiSource | undefined {
  const csi = spec.kind === "persistent" ? spec.volume.spec?.csi : undefined;
  return text(csi?.driver) && text(csi?.volumeHandle) ? csi : undefined;
}

export function isMigrated(spec: VolumeSpec): boolean {
  return spec.kind === "persistent" && spec.migrated !== "none";
}
