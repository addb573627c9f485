import type { PersistentVolumeSpec, Volume } from "kubernetes-types/core/v1.js";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { CsiSource } from "../spec.ts";
import { text } from "../untrusted.ts";

/** The in-tree sources that a CSI driver serves today; pods and PersistentVolumes name them by the same field. */
export type InTreeSource = keyof Volume &
  keyof PersistentVolumeSpec &
  (
    | "awsElasticBlockStore"
    | "azureDisk"
    | "azureFile"
    | "cinder"
    | "gcePersistentDisk"
    | "portworxVolume"
    | "vsphereVolume"
  );

/** The form of PersistentVolumes, which has every field of the inline one. Any of them may be missing or wrong. */
export type SourceOf<S extends InTreeSource> = NonNullable<PersistentVolumeSpec[S]>;

/** Where a source was found: what some plugins read besides it. */
export type Origin =
  | { readonly kind: "persistent"; readonly volume: PersistentVolume }
  | { readonly kind: "inline"; readonly name: string; readonly podNamespace: string };

/** Why a source has no CSI form: `has no volumeID`; whoever tells it says of which object. */
export interface Untranslatable {
  readonly problem: string;
}

/** One in-tree plugin: what its volumes are to the driver that took its place. */
export interface InTreePlugin<S extends InTreeSource = InTreeSource> {
  readonly source: S;
  readonly driver: string;
  /** What the driver calls the disk. */
  handle(source: SourceOf<S>, origin: Origin): string | Untranslatable;
  /** What else the driver is told. */
  fields(source: SourceOf<S>, origin: Origin): CsiFields;
  /** Name of the made-up PersistentVolume of an inline source; `<driver>-<handle>` where a plugin does not say. */
  inlineName?(source: SourceOf<S>, handle: string): string;
  inlineAccessModes(source: SourceOf<S>): string[];
  /** Unchanged where a plugin does not say. */
  accessModes?(modes: readonly string[]): string[];
}

export type CsiFields = Omit<CsiSource, "driver" | "volumeHandle">;

/** A handle that is one field of the source. Without it nobody can say which disk is meant. */
export function handleField<T>(source: T, field: string & keyof T): string | Untranslatable {
  return text(source[field]) || { problem: `has no ${field}` };
}

/**
 * As Go writes them: what is false, empty or absent is left out, so that a VolumeAttachment which holds a
 * translated source reads the same whoever created it.
 */
export function csiFields(fields: {
  readonly readOnly?: unknown;
  readonly fsType?: unknown;
  readonly volumeAttributes?: Readonly<Record<string, string>>;
}): CsiFields {
  const kept: CsiFields = {};
  if (fields.readOnly === true) kept.readOnly = true;
  const fsType = text(fields.fsType);
  if (fsType) kept.fsType = fsType;
  if (fields.volumeAttributes && Object.keys(fields.volumeAttributes).length > 0)
    kept.volumeAttributes = fields.volumeAttributes;
  return kept;
}

/** A partition's number; 0, the whole disk, for everything else. */
export function partitionOf(value: unknown): number {
  return typeof value === "number" && Number.isInteger(value) ? value : 0;
}

export const READ_WRITE_ONCE = "ReadWriteOnce";
export const READ_ONLY_MANY = "ReadOnlyMany";
export const READ_WRITE_MANY = "ReadWriteMany";
