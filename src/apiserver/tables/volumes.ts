import { fieldAt, type ApiObject } from "../objects.ts";
import { has, quantityAt, textAt, textsAt } from "./fields.ts";
import { ageColumn, column, createPrinter, isDeleting, nameColumn, wideColumn } from "./printer.ts";

/** PersistentVolume and PersistentVolumeClaim: two halves of one binding, shown alike. */

export const persistentVolumePrinter = createPrinter([
  nameColumn,
  column("Capacity", "How much it holds", (volume) => quantityAt(volume, "spec", "capacity", "storage")),
  column("Access Modes", "How it may be mounted", (volume) => modes(textsAt(volume, "spec", "accessModes"))),
  column("Reclaim Policy", "What becomes of it when its claim is gone", (volume) =>
    textAt(volume, "spec", "persistentVolumeReclaimPolicy"),
  ),
  column("Status", "Whether it is free, bound or on its way out", phaseOf),
  column("Claim", "The claim it is bound to, or kept for", claimOf),
  column("StorageClass", "The class it belongs to", classOf),
  column("VolumeAttributesClass", "The class of its attributes", attributesClassOf),
  column("Reason", "Why it is in that status", (volume) => textAt(volume, "status", "reason")),
  ageColumn,
  wideColumn("VolumeMode", "A filesystem or a raw block device", volumeModeOf),
]);

export const persistentVolumeClaimPrinter = createPrinter([
  nameColumn,
  column("Status", "Whether it waits, is bound or is on its way out", phaseOf),
  column("Volume", "The volume it is bound to", (claim) => textAt(claim, "spec", "volumeName")),
  column("Capacity", "How much its volume holds", (claim) =>
    isBound(claim) ? quantityAt(claim, "status", "capacity", "storage") : "",
  ),
  column("Access Modes", "How its volume may be mounted", (claim) =>
    isBound(claim) ? modes(textsAt(claim, "status", "accessModes")) : "",
  ),
  column("StorageClass", "The class its volume comes from", classOf),
  column("VolumeAttributesClass", "The class of attributes it asks for", attributesClassOf),
  ageColumn,
  wideColumn("VolumeMode", "A filesystem or a raw block device", volumeModeOf),
]);

function phaseOf(object: ApiObject): string {
  return isDeleting(object) ? "Terminating" : textAt(object, "status", "phase");
}

function isBound(claim: ApiObject): boolean {
  return textAt(claim, "spec", "volumeName") !== "";
}

function claimOf(volume: ApiObject): string {
  if (!has(volume, "spec", "claimRef")) return "";
  const claim = fieldAt(volume, "spec", "claimRef");
  return `${textAt(claim, "namespace")}/${textAt(claim, "name")}`;
}

const BETA_CLASS = "volume.beta.kubernetes.io/storage-class";

/** Where the annotation of old is present it is the one that counts, even when empty. */
function classOf(object: ApiObject): string {
  const annotation = fieldAt(object, "metadata", "annotations", BETA_CLASS);
  return typeof annotation === "string" ? annotation : textAt(object, "spec", "storageClassName");
}

function attributesClassOf(object: ApiObject): string {
  return unsetOr(fieldAt(object, "spec", "volumeAttributesClassName"));
}

function volumeModeOf(object: ApiObject): string {
  return unsetOr(fieldAt(object, "spec", "volumeMode"));
}

function unsetOr(value: unknown): string {
  return typeof value === "string" ? value : "<unset>";
}

/** In this order, whatever the order in the object. */
const SHORT_MODES: readonly (readonly [mode: string, short: string])[] = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
];

function modes(accessModes: readonly string[]): string {
  return SHORT_MODES.filter(([mode]) => accessModes.includes(mode))
    .map(([, short]) => short)
    .join(",");
}
