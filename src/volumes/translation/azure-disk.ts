import type { AzureDiskVolumeSource } from "kubernetes-types/core/v1.js";
import { csiFields, handleField, READ_WRITE_ONCE, type InTreePlugin, type Origin } from "./in-tree.ts";

const MANAGED = "Managed";

export const azureDisk: InTreePlugin<"azureDisk"> = {
  source: "azureDisk",
  driver: "disk.csi.azure.com",
  handle(source) {
    const kind: unknown = source.kind ?? MANAGED;
    // The driver knows managed disks only; Dedicated and Shared are blobs in a storage account.
    if (typeof kind !== "string" || kind.toLowerCase() !== MANAGED.toLowerCase())
      return { problem: `is of the kind ${JSON.stringify(kind)}, and the CSI driver serves only Managed` };
    return handleField(source, "diskURI");
  },
  fields(source, origin) {
    const { readOnly, fsType } = source;
    return csiFields({ readOnly, fsType, volumeAttributes: attributesOf(source, origin) });
  },
  inlineName: (_, diskUri) => diskUri,
  inlineAccessModes: () => [READ_WRITE_ONCE],
};

/** An empty caching mode is passed on from a PersistentVolume and not from a pod, as upstream does. */
function attributesOf(source: AzureDiskVolumeSource, { kind }: Origin): Record<string, string> {
  const cachingMode: unknown = source.cachingMode;
  const fsType: unknown = source.fsType;
  const attributes: Record<string, string> = { kind: MANAGED };
  if (typeof cachingMode === "string" && (cachingMode !== "" || kind === "persistent"))
    attributes["cachingmode"] = cachingMode;
  if (typeof fsType === "string") attributes["fstype"] = fsType;
  return attributes;
}
