import { fieldAt, type ApiObject } from "../objects.ts";
import { ageOf } from "./age.ts";
import { flagAt, numberAt } from "./fields.ts";
import { column, createPrinter, nameColumn, type Cell, type Column, type PrintContext } from "./printer.ts";

/**
 * The snapshot kinds are custom resources elsewhere. Their columns are those of the published definitions, and as
 * with all custom resources a value that is not there is null, and dates are typed as such but shown as ages.
 */

const ageColumn = column(
  "Age",
  "How long ago the object was created",
  dateAt("metadata", "creationTimestamp"),
  {
    type: "date",
  },
);

export const volumeSnapshotPrinter = createPrinter([
  nameColumn,
  readyColumn(),
  text("SourcePVC", "The claim it is taken of", "spec", "source", "persistentVolumeClaimName"),
  text("SourceSnapshotContent", "The content it was given", "spec", "source", "volumeSnapshotContentName"),
  text("RestoreSize", "The least a volume made of it must hold", "status", "restoreSize"),
  text("SnapshotClass", "The class it belongs to", "spec", "volumeSnapshotClassName"),
  text("SnapshotContent", "The content it is bound to", "status", "boundVolumeSnapshotContentName"),
  column("CreationTime", "How long ago the backend took it", dateAt("status", "creationTime"), {
    type: "date",
  }),
  ageColumn,
]);

export const volumeSnapshotContentPrinter = createPrinter([
  nameColumn,
  readyColumn(),
  column(
    "RestoreSize",
    "The bytes a volume made of it needs",
    (item) => numberAt(item, "status", "restoreSize") ?? null,
    { type: "integer" },
  ),
  text("DeletionPolicy", "Whether the backend forgets it with this object", "spec", "deletionPolicy"),
  text("Driver", "The driver that took it", "spec", "driver"),
  text("VolumeSnapshotClass", "The class it belongs to", "spec", "volumeSnapshotClassName"),
  text("VolumeSnapshot", "The snapshot it is bound to", "spec", "volumeSnapshotRef", "name"),
  text("VolumeSnapshotNamespace", "Where that snapshot lives", "spec", "volumeSnapshotRef", "namespace"),
  ageColumn,
]);

export const volumeSnapshotClassPrinter = createPrinter([
  nameColumn,
  text("Driver", "The driver that takes such snapshots", "driver"),
  text("DeletionPolicy", "Whether the backend forgets them with their objects", "deletionPolicy"),
  ageColumn,
]);

function readyColumn(): Column {
  const isReady = (item: ApiObject) => flagAt(item, "status", "readyToUse") ?? null;
  return column("ReadyToUse", "Whether a volume can be made of it", isReady, { type: "boolean" });
}

function text(name: string, description: string, ...path: readonly string[]): Column {
  return column(name, description, (item) => {
    const value = fieldAt(item, ...path);
    return typeof value === "string" || typeof value === "number" ? String(value) : null;
  });
}

function dateAt(...path: readonly string[]) {
  return (item: ApiObject, { nowMs }: PrintContext): Cell => {
    const value = fieldAt(item, ...path);
    return typeof value === "string" ? ageOf(value, nowMs) : null;
  };
}
