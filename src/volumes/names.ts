import { createHash } from "node:crypto";

/** `<plugin>/<what the plugin calls it>`: one real disk, whatever claims and volumes point at it. */
export type VolumeName = string & { readonly __brand: "VolumeName" };
export type NodeName = string & { readonly __brand: "NodeName" };

export const CSI_PLUGIN = "kubernetes.io/csi";

export function toVolumeName(plugin: string, pluginVolume: string): VolumeName {
  return `${plugin}/${pluginVolume}` as VolumeName;
}

export function csiVolumeName({
  driver,
  volumeHandle,
}: {
  readonly driver: string;
  readonly volumeHandle: string;
}): VolumeName {
  return toVolumeName(CSI_PLUGIN, `${driver}^${volumeHandle}`);
}

/**
 * Plugin and the plugin's name of a volume; plugin names contain one slash, what follows may contain any.
 * Undefined for what is no volume name.
 */
export function splitVolumeName(name: string): { plugin: string; pluginVolume: string } | undefined {
  const first = name.indexOf("/");
  const second = first < 0 ? -1 : name.indexOf("/", first + 1);
  if (second < 0) return undefined;
  return { plugin: name.slice(0, second), pluginVolume: name.slice(second + 1) };
}

/**
 * Driver and handle of a CSI volume. Driver names cannot contain `^` and handles can, so the first one
 * divides; upstream demands exactly one and can never detach the others.
 */
export function splitCsiVolume(pluginVolume: string): { driver: string; volumeHandle: string } | undefined {
  const at = pluginVolume.indexOf("^");
  if (at < 1 || at === pluginVolume.length - 1) return undefined;
  return { driver: pluginVolume.slice(0, at), volumeHandle: pluginVolume.slice(at + 1) };
}

/**
 * The handle that an attacher of ours wrote into a VolumeAttachment before it published the volume. It is what is left to
 * know the disk by when the PersistentVolume is gone.
 */
export const HANDLE_ANNOTATION = "mooring.dev/volume-handle";

const OWN_NAME = /^csi-[0-9a-f]{64}$/;

/** Whether a VolumeAttachment has a name as this controller, or upstream's, would give one; any other is somebody else's. */
export function isOwnAttachmentName(name: string): boolean {
  return OWN_NAME.test(name);
}

/** The name under which everybody looks for the VolumeAttachment of a volume on a node. */
export function volumeAttachmentName(
  { driver, volumeHandle }: { readonly driver: string; readonly volumeHandle: string },
  node: string,
): string {
  return `csi-${createHash("sha256").update(`${volumeHandle}${driver}${node}`).digest("hex")}`;
}
