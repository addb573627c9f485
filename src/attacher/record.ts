import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { text } from "../volumes/untrusted.ts";
import type { SecretRef } from "./secrets.ts";
import { HANDLE_ANNOTATION, SECRET_ANNOTATION } from "./names.ts";

/**
 * What a detach needs of a PersistentVolume, written into the attachment before the volume is published. A
 * PersistentVolume whose finalizers were removed by hand is gone; the disk is still in the machine, and without its handle
 * nobody could ever take it out (external-attacher #235).
 *
 * It is believed before the PersistentVolume, which may be another one of that name by now: `identity.ts` says when. Of the
 * secret it holds the name.
 */
export interface AttachRecord {
  readonly volumeHandle: string;
  readonly secretRef: SecretRef | undefined;
}

export function recordAnnotations({ volumeHandle, secretRef }: AttachRecord): Record<string, string> {
  return {
    [HANDLE_ANNOTATION]: volumeHandle,
    ...(secretRef && { [SECRET_ANNOTATION]: `${secretRef.namespace}/${secretRef.name}` }),
  };
}

export function recordedSource({ metadata }: VolumeAttachment): AttachRecord | undefined {
  const volumeHandle = text(metadata.annotations?.[HANDLE_ANNOTATION]);
  if (volumeHandle === "") return undefined;
  const [namespace = "", name = ""] = text(metadata.annotations?.[SECRET_ANNOTATION]).split("/");
  return { volumeHandle, secretRef: name === "" ? undefined : { namespace, name } };
}
