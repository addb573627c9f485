import {
  csiFields,
  handleField,
  partitionOf,
  READ_WRITE_ONCE,
  type InTreePlugin,
  type Untranslatable,
} from "./in-tree.ts";

export const awsEbs: InTreePlugin<"awsElasticBlockStore"> = {
  source: "awsElasticBlockStore",
  driver: "ebs.csi.aws.com",
  handle(source) {
    const volumeId = handleField(source, "volumeID");
    return typeof volumeId === "string" ? withoutUrl(volumeId) : volumeId;
  },
  fields({ readOnly, fsType, partition }) {
    return csiFields({ readOnly, fsType, volumeAttributes: { partition: String(partitionOf(partition)) } });
  },
  inlineAccessModes: () => [READ_WRITE_ONCE],
};

/**
 * Old clusters wrote `aws://<zone>/<id>`, with or without the zone; both mean the disk `<id>`. Anything that is
 * no such URL is taken to be an id.
 */
function withoutUrl(volumeId: string): string | Untranslatable {
  const path = /^aws:\/\/[^/?#]*([^?#]*)/.exec(volumeId)?.[1];
  if (path === undefined) return volumeId;
  const [id = "", ...others] = path.split("/").filter((part) => part !== "");
  return id.startsWith("vol-") && others.length === 0
    ? id
    : { problem: `has the volumeID ${volumeId}, which names no EBS volume` };
}
