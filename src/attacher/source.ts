import type { PersistentVolumeSpec } from "kubernetes-types/core/v1.js";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import type { CsiSource } from "../volumes/spec.ts";
import { translate } from "../volumes/translation/translate.ts";
import { isObject, text } from "../volumes/untrusted.ts";
import { AttacherError } from "./errors.ts";
import { detachBy } from "./identity.ts";
import { recordedSource } from "./record.ts";
import type { SecretRef } from "./secrets.ts";

/** The volume of an attachment in the words of its driver. */
export interface AttachSource {
  /** With its CSI source, translated where the volume is an in-tree one. */
  readonly spec: PersistentVolumeSpec;
  readonly csi: CsiSource;
  readonly migrated: boolean;
}

/** As much of it as a detach needs. */
export interface DetachSource {
  readonly volumeHandle: string;
  readonly secretRef: SecretRef | undefined;
  readonly migrated: boolean;
}

/** What an attachment names: a PersistentVolume, or a spec of its own. */
export type Named =
  | { readonly kind: "volume"; readonly name: string }
  | { readonly kind: "inline"; readonly spec: PersistentVolumeSpec };

export function namedBy({ metadata, spec }: VolumeAttachment): Named {
  const source: unknown = spec.source;
  const { persistentVolumeName, inlineVolumeSpec } = (isObject(source) ? source : {}) as {
    persistentVolumeName?: unknown;
    inlineVolumeSpec?: unknown;
  };
  const name = text(persistentVolumeName);
  const inline = isObject(inlineVolumeSpec);
  if (name !== "" && inline) {
    throw badSource(
      metadata.name,
      "names a PersistentVolume and has an inline volume; it may have one of them",
    );
  }
  if (inline) return { kind: "inline", spec: inlineVolumeSpec };
  if (name !== "") return { kind: "volume", name };
  throw badSource(metadata.name, "names neither a PersistentVolume nor an inline volume");
}

/** The name of its PersistentVolume, if it has one and one only. */
export function volumeNameOf({ spec }: VolumeAttachment): string {
  return isObject(spec.source) ? text(spec.source.persistentVolumeName) : "";
}

/** The handle that an attachment itself tells: its inline volume's, or the one recorded when it was attached. */
export function ownHandleOf(attachment: VolumeAttachment): string {
  const { source } = attachment.spec;
  const inline = isObject(source) ? source.inlineVolumeSpec : undefined;
  if (isObject(inline)) return text(inline.csi?.volumeHandle);
  return recordedSource(attachment)?.volumeHandle ?? "";
}

/** The handle of a PersistentVolume, translated where it is an in-tree one; empty where no driver has it. */
export function handleOfVolume(volume: PersistentVolume): string {
  return csiOfVolume(volume)?.volumeHandle ?? "";
}

/** Its driver, likewise. */
export function driverOfVolume(volume: PersistentVolume): string {
  return csiOfVolume(volume)?.driver ?? "";
}

function csiOfVolume(volume: PersistentVolume): CsiSource | undefined {
  try {
    return volumeSource("", volume).csi;
  } catch (error) {
    if (error instanceof AttacherError) return undefined;
    throw error;
  }
}

/** `volume` is the PersistentVolume that the attachment names. */
export function attachSource(
  attachment: VolumeAttachment,
  volume: PersistentVolume | undefined,
  driver: string,
): AttachSource {
  const named = namedBy(attachment);
  const source = named.kind === "inline" ? inlineSource(named.spec) : volumeSource(named.name, volume);
  if (source.csi.driver === driver) return source;
  throw badSource(
    attachment.metadata.name,
    `is for driver ${driver}, but its volume belongs to driver ${source.csi.driver}`,
  );
}

export function detachSource(
  attachment: VolumeAttachment,
  volume: PersistentVolume | undefined,
): DetachSource {
  const named = namedBy(attachment);
  if (named.kind === "inline") return ofCsi(inlineSource(named.spec));
  const recorded = recordedSource(attachment);
  const present = volume && presentSource(named.name, volume, recorded !== undefined);
  if (present !== undefined) {
    const { csi, migrated } = present;
    if (detachBy(attachment, csi.volumeHandle, migrated) === "volume") return ofCsi(present);
  }
  if (recorded !== undefined) return { ...recorded, migrated: present?.migrated ?? false };
  throw volumeMissing(named.name);
}

/** A volume that is no CSI volume any more has nothing to say against a record. */
function presentSource(name: string, volume: PersistentVolume, recorded: boolean): AttachSource | undefined {
  try {
    return volumeSource(name, volume);
  } catch (error) {
    if (recorded && error instanceof AttacherError) return undefined;
    throw error;
  }
}

/** Whether the record speaks and not the PersistentVolume, though that is there. */
export function isByRecord(attachment: VolumeAttachment, volume: PersistentVolume | undefined): boolean {
  const named = namedBy(attachment);
  if (named.kind === "inline" || volume === undefined) return false;
  const present = presentSource(named.name, volume, true);
  return detachSource(attachment, volume).volumeHandle !== present?.csi.volumeHandle;
}

function ofCsi({ csi, migrated }: AttachSource): DetachSource {
  return { volumeHandle: csi.volumeHandle, secretRef: secretRefOf(csi), migrated };
}

export function secretRefOf({ controllerPublishSecretRef }: CsiSource): SecretRef | undefined {
  const [name, namespace] = [
    text(controllerPublishSecretRef?.name),
    text(controllerPublishSecretRef?.namespace),
  ];
  return name === "" && namespace === "" ? undefined : { name, namespace };
}

export function volumeMissing(name: string): AttacherError {
  return new AttacherError("VolumeMissing", `persistentvolume "${name}" not found`);
}

/** Used as it is: who writes an inline spec has translated it. */
function inlineSource(spec: PersistentVolumeSpec): AttachSource {
  const csi = csiOf(spec);
  if (csi === undefined) throw new AttacherError("BadSource", "the inline volume has no CSI source");
  return { spec, csi, migrated: false };
}

function volumeSource(name: string, volume: PersistentVolume | undefined): AttachSource {
  if (volume === undefined) throw volumeMissing(name);
  const translation = translate({ kind: "persistent", volume, readOnly: false, migrated: "none" });
  if (translation.kind === "untranslatable") {
    throw new AttacherError("BadSource", `persistentvolume "${name}": ${translation.message}`);
  }
  const { spec } = translation;
  const translated = spec.kind === "persistent" ? spec.volume.spec : undefined;
  const csi = translated && csiOf(translated);
  if (csi === undefined) {
    throw new AttacherError("BadSource", `persistentvolume "${name}" has no CSI source`);
  }
  return { spec: translated ?? {}, csi, migrated: spec.kind === "persistent" && spec.migrated !== "none" };
}

function csiOf({ csi }: PersistentVolumeSpec): CsiSource | undefined {
  return text(csi?.volumeHandle) ? csi : undefined;
}

/** Of a type that once was served inside Kubernetes and is translated today. */
export function isInTree(volume: PersistentVolume): boolean {
  const spec = { kind: "persistent", volume, readOnly: false, migrated: "none" } as const;
  const translation = translate(spec);
  return translation.kind === "untranslatable" || translation.spec !== spec;
}

function badSource(name: string | undefined, why: string): AttacherError {
  return new AttacherError("BadSource", `VolumeAttachment ${name} ${why}`);
}
