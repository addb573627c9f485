/**
 * Every call of CSI, by name. Written down and not read from the generated services, since the command line checks
 * `--faults` before anything is loaded; a test compares the two.
 */
export const RPC_NAMES: readonly string[] = [
  ...["GetPluginInfo", "GetPluginCapabilities", "Probe"],
  ...["CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume"],
  ...["ValidateVolumeCapabilities", "ListVolumes", "GetCapacity", "ControllerGetCapabilities"],
  ...["CreateSnapshot", "DeleteSnapshot", "ListSnapshots", "GetSnapshot"],
  ...["ControllerExpandVolume", "ControllerGetVolume", "ControllerModifyVolume"],
  ...["ControllerGetVolumeHealth", "ControllerListVolumeHealth"],
  ...["GroupControllerGetCapabilities", "CreateVolumeGroupSnapshot"],
  ...["DeleteVolumeGroupSnapshot", "GetVolumeGroupSnapshot"],
  ...["GetMetadataAllocated", "GetMetadataDelta"],
  ...["NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume"],
  ...["NodeGetVolumeStats", "NodeExpandVolume", "NodeGetCapabilities", "NodeGetInfo"],
  ...["NodeGetVolumeHealth", "NodeGetStorageHealth"],
];

/** The call that somebody who wrote `text` most likely meant: the one that takes the fewest edits. */
export function nearestRpc(text: string): string {
  const wanted = text.toLowerCase();
  const [first = ""] = RPC_NAMES.map((name) => ({ name, edits: edits(name.toLowerCase(), wanted) }))
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name);
  return first;
}

/** Letters to insert, leave out or replace to make `b` of `a`. */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
