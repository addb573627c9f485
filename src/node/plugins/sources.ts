import type { PersistentVolumeSpec, Volume } from "kubernetes-types/core/v1.js";
import type { VolumeSpec } from "../../volumes/spec.ts";
import type { VolumeTraits } from "../plugin.ts";

/** The source of this kind written into the pod. */
export function inlineSource<K extends keyof Volume>(spec: VolumeSpec, kind: K): Volume[K] | undefined {
  return spec.kind === "inline" ? spec.volume[kind] : undefined;
}

/** The source of this kind, written into the pod or into a PersistentVolume. */
export function sourceOf<K extends keyof Volume & keyof PersistentVolumeSpec>(
  spec: VolumeSpec,
  kind: K,
): Volume[K] | PersistentVolumeSpec[K] | undefined {
  return spec.kind === "inline" ? spec.volume[kind] : spec.volume.spec?.[kind];
}

/** What most plugins of this folder are; each names where it differs. */
export const PLAIN_TRAITS: VolumeTraits = {
  attachable: "no",
  deviceMountable: false,
  requiresRemount: false,
  mountOptions: false,
  selinuxMount: false,
  expandable: false,
};

const MOUNT_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options";

/** Of the PersistentVolume; the annotation wins over the field. */
export function mountOptionsOf(spec: VolumeSpec): readonly string[] {
  if (spec.kind === "inline") return [];
  const annotation = spec.volume.metadata.annotations?.[MOUNT_OPTIONS_ANNOTATION];
  return annotation ? annotation.split(",") : (spec.volume.spec?.mountOptions ?? []);
}

/** Options as a mount gets them: sorted, each once, empty ones dropped. */
export function joinOptions(...lists: readonly (readonly string[])[]): readonly string[] {
  const words = lists.flat().map((option) => option.trim());
  return [...new Set(words.filter((option) => option !== ""))].sort();
}

/** The pod's claim decides for a PersistentVolume; the source's own field only counts where it is written into the pod. */
export function isReadOnly(spec: VolumeSpec, source: { readonly readOnly?: boolean } | undefined): boolean {
  return spec.kind === "inline" ? (source?.readOnly ?? false) : spec.readOnly;
}

/** Whether a step of a path leads upwards. Names of containers' choosing must not. */
export function hasBackstep(path: string): boolean {
  return path.split("/").includes("..");
}
