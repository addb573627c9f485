import type { VolumeSpec } from "./spec.ts";

const SEVERAL_NODES = new Set<unknown>(["ReadWriteMany", "ReadOnlyMany"]);

/**
 * Whether the volume may be attached to several nodes at once. A PersistentVolume says so by its access modes;
 * one without any promises nothing, and is allowed as upstream allows it. Inline Azure disks and Cinder
 * volumes belong to one machine; other inline volumes (iSCSI, FC) carry no such rule.
 */
export function mayMultiAttach(spec: VolumeSpec): boolean {
  if (spec.kind === "inline") return !spec.volume.azureDisk && !spec.volume.cinder;
  const modes: unknown = spec.volume.spec?.accessModes;
  if (modes === undefined || modes === null) return true;
  // Unsure means no: what is no list might have meant one node.
  return Array.isArray(modes) && (modes.length === 0 || modes.some((mode) => SEVERAL_NODES.has(mode)));
}
