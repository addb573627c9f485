import { csiFields, handleField, READ_WRITE_ONCE, type InTreePlugin } from "./in-tree.ts";

export const cinder: InTreePlugin<"cinder"> = {
  source: "cinder",
  driver: "cinder.csi.openstack.org",
  handle: (source) => handleField(source, "volumeID"),
  fields: ({ readOnly, fsType }) => csiFields({ readOnly, fsType }),
  inlineAccessModes: () => [READ_WRITE_ONCE],
};
