/** Names on the wire: the same as upstream's, so that either can take over from the other. */

/** Where a node's id for the driver is kept, so that a detach finds it when the node is gone. */
export const NODE_ID_ANNOTATION = "csi.alpha.kubernetes.io/node-id";

/** Which driver an in-tree PersistentVolume was migrated to. */
export const MIGRATED_TO_ANNOTATION = "pv.kubernetes.io/migrated-to";

/** What a detach needs of a PersistentVolume, should that vanish first. Ours; others ignore them. */
export { HANDLE_ANNOTATION } from "../volumes/names.ts";
/** `namespace/name`; never what is in it. */
export const SECRET_ANNOTATION = "mooring.dev/controller-publish-secret";

/** One finalizer, on VolumeAttachments and on PersistentVolumes. */
export function finalizerOf(driver: string): string {
  return `external-attacher/${sanitize(driver)}`;
}

export function leaseNameOf(driver: string): string {
  return sanitize(`external-attacher-leader-${driver}`);
}

/** Upstream's rule, byte for byte: two drivers it confuses are confused here, or a hand-over would lose finalizers. */
export function sanitize(name: string): string {
  const safe = name.replaceAll(/[^A-Za-z0-9-]/g, "-");
  return safe.endsWith("-") ? `${safe}X` : safe;
}

/** The drivers of the seven in-tree plugins: their metrics carry the label `migrated`. */
const MIGRATION_DRIVERS = new Set([
  "pd.csi.storage.gke.io",
  "ebs.csi.aws.com",
  "cinder.csi.openstack.org",
  "disk.csi.azure.com",
  "file.csi.azure.com",
  "csi.vsphere.vmware.com",
  "pxd.portworx.com",
]);

export function isMigrationDriver(driver: string): boolean {
  return MIGRATION_DRIVERS.has(driver);
}
