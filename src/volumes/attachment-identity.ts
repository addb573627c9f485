import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import {
  csiVolumeName,
  HANDLE_ANNOTATION,
  isOwnAttachmentName,
  volumeAttachmentName,
  type VolumeName,
} from "./names.ts";
import { csiSourceOf, type CsiSource, type VolumeSpec } from "./spec.ts";
import { translate } from "./translation/translate.ts";
import { isObject, text } from "./untrusted.ts";

/**
 * What a VolumeAttachment is, told by its content: the PersistentVolume or the source it names, its driver, its node. Its
 * name says only whether it is ours. We delete by that name, so a name that its content does not give is never ours to
 * delete, whoever wrote it; but the disk is on its node all the same. Pure.
 */
export type AttachmentIdentity =
  /**
   * Its name is the one that driver, handle and node give: the handle that its source says, or, where the PersistentVolume is
   * another disk by now, the one that an attacher of ours recorded before it published; that attacher detaches by the record.
   */
  | { readonly kind: "own"; readonly volume: VolumeName; readonly spec: VolumeSpec }
  /** A name like ours, but its PersistentVolume is gone: the digest in the name is all that tells the volume, and no record speaks against it. */
  | { readonly kind: "own-unread" }
  /** Somebody else's name, or the name of another volume. Several volumes where it contradicts itself, none where nobody can tell. */
  | {
      readonly kind: "foreign";
      readonly volumes: readonly VolumeName[];
      readonly spec: VolumeSpec | undefined;
    };

export type VolumeLookup = (name: string) => PersistentVolume | undefined;

export function identify(attachment: VolumeAttachment, volumeNamed: VolumeLookup): AttachmentIdentity {
  const name = text(attachment.metadata.name);
  const { attacher, nodeName } = attachment.spec;
  const content = contentOf(attachment, volumeNamed);
  const source = content.kind === "read" ? csiSourceOf(content.spec) : undefined;
  if (
    content.kind === "read" &&
    source !== undefined &&
    source.driver === attacher &&
    volumeAttachmentName(source, nodeName) === name
  )
    return { kind: "own", volume: csiVolumeName(source), spec: content.spec };
  const recorded = recordedSource(attachment);
  const isAsRecorded = recorded !== undefined && volumeAttachmentName(recorded, nodeName) === name;
  if (content.kind === "volume-gone" && isOwnAttachmentName(name) && (recorded === undefined || isAsRecorded))
    return { kind: "own-unread" };
  if (content.kind === "read" && isAsRecorded)
    return { kind: "own", volume: csiVolumeName(recorded), spec: recordedSpec(recorded, content.spec) };
  return {
    kind: "foreign",
    volumes: volumesOf(attachment, source),
    spec: content.kind === "read" ? content.spec : undefined,
  };
}

/**
 * Whether the VolumeAttachment that has this volume's name on this node stands for it, as far as anybody can tell. Asked at
 * every look at a placement, so the digest, which is the name that it was found by, is not made again.
 */
export function standsFor(
  attachment: VolumeAttachment,
  { source, node }: { readonly source: Pick<CsiSource, "driver" | "volumeHandle">; readonly node: string },
  volumeNamed: VolumeLookup,
): boolean {
  const { attacher, nodeName } = attachment.spec;
  if (attacher !== source.driver || nodeName !== node) return false;
  const content = contentOf(attachment, volumeNamed);
  if (content.kind !== "read") return content.kind === "volume-gone";
  return recordedSource(attachment)?.volumeHandle === source.volumeHandle || isDisk(content.spec, source);
}

/** Whether what it names is there, and is this disk: what has to be so before one is made. */
export function leadsTo(
  attachment: VolumeAttachment,
  source: Pick<CsiSource, "driver" | "volumeHandle">,
  volumeNamed: VolumeLookup,
): boolean {
  const content = contentOf(attachment, volumeNamed);
  return content.kind === "read" && isDisk(content.spec, source);
}

function isDisk(spec: VolumeSpec, source: Pick<CsiSource, "driver" | "volumeHandle">): boolean {
  const named = csiSourceOf(spec);
  return named?.driver === source.driver && named.volumeHandle === source.volumeHandle;
}

/** What an attacher of ours wrote down before it published; undefined of one that none has taken up. */
function recordedSource({
  metadata,
  spec,
}: VolumeAttachment): Pick<CsiSource, "driver" | "volumeHandle"> | undefined {
  const [driver, volumeHandle] = [text(spec.attacher), text(metadata.annotations?.[HANDLE_ANNOTATION])];
  return driver === "" || volumeHandle === "" ? undefined : { driver, volumeHandle };
}

/**
 * A disk whose PersistentVolume is another one by now. The new one most likely names the claim that the old one did, and so the
 * pods that may run on the old disk; how many nodes might have that nobody can tell any more, so it is one.
 */
function recordedSpec(csi: Pick<CsiSource, "driver" | "volumeHandle">, now: VolumeSpec): VolumeSpec {
  const { metadata, spec } = now.kind === "persistent" ? now.volume : { metadata: { name: "" } };
  const claimRef = spec?.claimRef;
  const volume: PersistentVolume = {
    metadata,
    spec: { csi, accessModes: ["ReadWriteOnce"], ...(claimRef && { claimRef }) },
  };
  return { kind: "persistent", volume, readOnly: false, migrated: "none" };
}

/** Whether it is one of ours on this node of which the digest in its name is all there is to know. */
export function isUnread(attachment: VolumeAttachment, node: string, volumeNamed: VolumeLookup): boolean {
  return attachment.spec.nodeName === node && identify(attachment, volumeNamed).kind === "own-unread";
}

/** The PersistentVolume it names; empty where it names none. */
export function volumeNamedBy({ spec }: VolumeAttachment): string {
  const source: unknown = spec.source;
  return isObject(source) ? text((source as { persistentVolumeName?: unknown }).persistentVolumeName) : "";
}

type Content =
  | { readonly kind: "read"; readonly spec: VolumeSpec }
  | { readonly kind: "volume-gone" }
  /** It names nothing, or something that no CSI driver serves. */
  | { readonly kind: "unreadable" };

function contentOf(attachment: VolumeAttachment, volumeNamed: VolumeLookup): Content {
  const source: unknown = attachment.spec.source;
  if (!isObject(source)) return { kind: "unreadable" };
  const { inlineVolumeSpec } = source as VolumeAttachment["spec"]["source"];
  if (isObject(inlineVolumeSpec)) {
    const volume: PersistentVolume = { metadata: { name: "" }, spec: inlineVolumeSpec };
    return { kind: "read", spec: { kind: "persistent", volume, readOnly: false, migrated: "inline" } };
  }
  const name = volumeNamedBy(attachment);
  if (name === "") return { kind: "unreadable" };
  const volume = volumeNamed(name);
  if (volume === undefined) return { kind: "volume-gone" };
  const translation = translate({ kind: "persistent", volume, readOnly: false, migrated: "none" });
  return translation.kind === "untranslatable"
    ? { kind: "unreadable" }
    : { kind: "read", spec: translation.spec };
}

/**
 * Every volume it may have attached: what its source says, under the source's driver and under the attacher's, which is the
 * one that acts; and what an attacher of ours wrote down when it published, should the PersistentVolume be another since.
 */
function volumesOf(attachment: VolumeAttachment, source: CsiSource | undefined): VolumeName[] {
  const driver = text(attachment.spec.attacher);
  const recorded = recordedSource(attachment);
  const all = source ? [csiVolumeName(source)] : [];
  if (source && driver !== "") all.push(csiVolumeName({ driver, volumeHandle: source.volumeHandle }));
  if (recorded) all.push(csiVolumeName(recorded));
  return [...new Set(all)];
}
