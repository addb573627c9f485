import type { CSINode } from "../kube/api/csi-node.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { text } from "../volumes/untrusted.ts";
import { AttacherError } from "./errors.ts";
import { NODE_ID_ANNOTATION } from "./names.ts";

/** What the driver calls a node; undefined while the driver is not registered there. */
export function registeredNodeId(node: CSINode | undefined, driver: string): string | undefined {
  const drivers: unknown = node?.spec.drivers;
  if (!Array.isArray(drivers)) return undefined;
  const entry = (drivers as readonly { name?: unknown; nodeID?: unknown }[]).find(
    (item) => item.name === driver,
  );
  return text(entry?.nodeID) || undefined;
}

/** What the last try of an attach called the node; written before anything is published. */
export function recordedNodeId({ metadata }: Pick<VolumeAttachment, "metadata">): string | undefined {
  return text(metadata.annotations?.[NODE_ID_ANNOTATION]) || undefined;
}

/**
 * For an attach only the node's own word counts: an annotation of an earlier try may name a machine that was replaced
 * under the same name.
 */
export function attachNodeId({ spec }: VolumeAttachment, node: CSINode | undefined, driver: string): string {
  const id = registeredNodeId(node, driver);
  if (id !== undefined) return id;
  const missing = node === undefined ? "has no CSINode object" : `has not registered driver ${driver}`;
  throw new AttacherError(
    "NodeUnknown",
    `node ${spec.nodeName} ${missing}, so driver ${driver} cannot be told where to attach; ` +
      "this is tried again as soon as the CSINode changes",
  );
}

/**
 * For a detach the id that the attach used, also where the driver calls the node by another one by now: the volume has to
 * leave the machine that it was published on, or the next node that gets it is the second.
 */
export function detachNodeId(
  { metadata, spec }: VolumeAttachment,
  node: CSINode | undefined,
  driver: string,
): string {
  const id = recordedNodeId({ metadata }) ?? registeredNodeId(node, driver);
  if (id !== undefined) return id;
  throw new AttacherError(
    "NodeUnknown",
    `node ${spec.nodeName} has not registered driver ${driver}, and VolumeAttachment ${metadata.name} has no ` +
      `annotation ${NODE_ID_ANNOTATION}, so driver ${driver} cannot be told where to detach`,
  );
}
