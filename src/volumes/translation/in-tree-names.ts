import { splitCsiVolume, splitVolumeName, type VolumeName } from "../names.ts";

/** The plugins of nodes from before migration, and the drivers that took their place. */
const DRIVERS: ReadonlyMap<string, string> = new Map([
  ["kubernetes.io/aws-ebs", "ebs.csi.aws.com"],
  ["kubernetes.io/gce-pd", "pd.csi.storage.gke.io"],
  ["kubernetes.io/cinder", "cinder.csi.openstack.org"],
  ["kubernetes.io/azure-disk", "disk.csi.azure.com"],
  ["kubernetes.io/azure-file", "file.csi.azure.com"],
  ["kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"],
  ["kubernetes.io/portworx-volume", "pxd.portworx.com"],
]);

export function isInTreeName(name: string): boolean {
  return DRIVERS.has(splitVolumeName(name)?.plugin ?? "");
}

/**
 * Whether a name that an old node uses may mean this CSI volume: `kubernetes.io/aws-ebs/aws://us-east-1a/vol-1` is
 * `kubernetes.io/csi/ebs.csi.aws.com^vol-1`. Zones and projects are written in one form and not in the other, so the last
 * part of the path decides; two disks of one name in two zones are taken for one, which only keeps a volume attached.
 */
export function mayBeSameDisk(inTreeName: string, volume: VolumeName): boolean {
  const old = splitVolumeName(inTreeName);
  const driver = old && DRIVERS.get(old.plugin);
  if (driver === undefined) return false;
  const csi = splitCsiVolume(splitVolumeName(volume)?.pluginVolume ?? "");
  return csi?.driver === driver && lastPart(csi.volumeHandle) === lastPart(old?.pluginVolume ?? "");
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
