import { text } from "../untrusted.ts";
import { csiFields, handleField, READ_WRITE_ONCE, type InTreePlugin } from "./in-tree.ts";

export const vsphere: InTreePlugin<"vsphereVolume"> = {
  source: "vsphereVolume",
  driver: "csi.vsphere.vmware.com",
  handle: (source) => handleField(source, "volumePath"),
  // The policy is read from the source in both forms. Upstream looks for it in the translated inline volume,
  // where there is none, and crashes: one pod stops its whole controller manager.
  fields({ fsType, storagePolicyName }) {
    const policy = text(storagePolicyName);
    return csiFields({ fsType, volumeAttributes: policy ? { storagepolicyname: policy } : {} });
  },
  inlineAccessModes: () => [READ_WRITE_ONCE],
};
