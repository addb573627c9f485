import { CSI_PLUGIN } from "../../volumes/names.ts";
import { csiSourceOf, type VolumeSpec } from "../../volumes/spec.ts";
import type { OperationName, VolumeState } from "../world.ts";

/** What a step asks of a CSI driver. */
const CALLS: Readonly<Record<OperationName, string>> = {
  mount_device: "NodeStageVolume",
  volume_mount: "NodePublishVolume",
  map_device: "NodeStageVolume",
  map_volume: "NodePublishVolume",
  volume_unmount: "NodeUnpublishVolume",
  unmap_volume: "NodeUnpublishVolume",
  unmount_device: "NodeUnstageVolume",
  unmap_device: "NodeUnstageVolume",
  volume_fs_resize: "NodeExpandVolume",
  volume_attach: "ControllerPublishVolume",
  volume_detach: "ControllerUnpublishVolume",
};

/** `volume_unmount (NodeUnpublishVolume of driver d)`: metrics name the step, a driver's log names the call. */
export function callText({ plugin, held, wants }: VolumeState, operation: OperationName): string {
  if (plugin.name !== CSI_PLUGIN) return `${operation} (${plugin.name})`;
  const spec = held?.spec ?? [...wants.values()][0]?.spec;
  const driver = spec && driverOf(spec);
  return `${operation} (${CALLS[operation]}${driver === undefined ? "" : ` of driver ${driver}`})`;
}

function driverOf(spec: VolumeSpec): string | undefined {
  return csiSourceOf(spec)?.driver ?? (spec.kind === "inline" ? spec.volume.csi?.driver : undefined);
}
