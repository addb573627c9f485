import {
  configMapPrinter,
  defaultPrinter,
  leasePrinter,
  namespacePrinter,
  secretPrinter,
  serviceAccountPrinter,
} from "./core.ts";
import { eventPrinter } from "./events.ts";
import { nodePrinter } from "./nodes.ts";
import { podPrinter } from "./pods.ts";
import type { Printer } from "./printer.ts";
import { roleBindingPrinter } from "./rbac.ts";
import {
  volumeSnapshotClassPrinter,
  volumeSnapshotContentPrinter,
  volumeSnapshotPrinter,
} from "./snapshots.ts";
import {
  csiDriverPrinter,
  csiNodePrinter,
  storageClassPrinter,
  volumeAttachmentPrinter,
  volumeAttributesClassPrinter,
} from "./storage.ts";
import { persistentVolumeClaimPrinter, persistentVolumePrinter } from "./volumes.ts";

/** How objects of a kind are printed. No two kinds that this server knows share a name and differ in columns. */
export function printerFor(kind: string): Printer {
  return PRINTERS.get(kind) ?? defaultPrinter;
}

const PRINTERS: ReadonlyMap<string, Printer> = new Map([
  ["Namespace", namespacePrinter],
  ["Node", nodePrinter],
  ["Pod", podPrinter],
  ["PersistentVolume", persistentVolumePrinter],
  ["PersistentVolumeClaim", persistentVolumeClaimPrinter],
  ["Secret", secretPrinter],
  ["ConfigMap", configMapPrinter],
  ["ServiceAccount", serviceAccountPrinter],
  ["Event", eventPrinter],
  ["Lease", leasePrinter],
  ["StorageClass", storageClassPrinter],
  ["VolumeAttachment", volumeAttachmentPrinter],
  ["CSINode", csiNodePrinter],
  ["CSIDriver", csiDriverPrinter],
  ["VolumeAttributesClass", volumeAttributesClassPrinter],
  ["RoleBinding", roleBindingPrinter],
  ["ClusterRoleBinding", roleBindingPrinter],
  ["VolumeSnapshot", volumeSnapshotPrinter],
  ["VolumeSnapshotContent", volumeSnapshotContentPrinter],
  ["VolumeSnapshotClass", volumeSnapshotClassPrinter],
]);
