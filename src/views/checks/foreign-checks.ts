import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { splitCsiVolume, splitVolumeName, volumeAttachmentName } from "../../volumes/names.ts";
import { volumeOf } from "../cluster.ts";
import { createdAt, field, isDeleting, nameOf, textAt } from "../fields.ts";
import type { Evidence } from "../reasons/reasons.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";

/*
 * VolumeAttachments that no attach/detach controller made. They have the disk like any other, and end when their owner
 * says so: a pod beside one may run, but it is not well.
 */

/** On the pod's own node: whoever deletes it has the driver take the disk from under the pod. */
export const foreignHere: Check = (view) => {
  const first = view.foreign.find((item) => nameOf(item) !== ownNameOf(view));
  if (first === undefined || !view.needsAttach) return undefined;
  return found("foreign-attachment", view, {
    names: { attachment: nameOf(first), then: thenOf(first) },
    evidence: evidenceOf(view, first),
    sinceMs: createdAt(first),
  });
};

function thenOf(attachment: VolumeAttachment): string {
  return isDeleting(attachment)
    ? "it is being deleted: its driver takes the disk off the node, whoever uses it there, and nothing is attached before that is over"
    : "it stays until whoever made it deletes it; the volume of a controller beside it stays as long";
}

/** One that is still to be attached counts like one that is: the driver may do it in the next moment. */
export const attachedTwice: Check = (view) => {
  const [other] = view.otherAttachments;
  const here = view.attachment ?? view.foreign[0];
  if (!view.exclusive || other === undefined || field(here, "status", "attached") !== true) return undefined;
  const holder = textAt(other, "spec", "nodeName");
  const name = volumeOf(other);
  const besides = name === view.pvName || name === "" ? undefined : `there it is PersistentVolume ${name}`;
  return found("attached-twice", view, {
    names: { attachment: nameOf(other), holder },
    besides,
    evidence: [
      ...evidenceOf(view, other),
      seen(`VolumeAttachment ${nameOf(here)}`, "spec.nodeName", view.nodeName),
    ],
    sinceMs: createdAt(other),
  });
};

/** The name that the volume would have on this node is taken by something else. */
export const attachmentMismatch: Check = (view) => {
  const { cluster, needsAttach } = view;
  const taken = needsAttach ? cluster.find("attachments", ownNameOf(view)) : undefined;
  if (taken === undefined || !cluster.disks().isForeign(taken)) return undefined;
  const attachment = nameOf(taken);
  const what = `${volumeOf(taken) || "an inline volume"} of driver ${textAt(taken, "spec", "attacher")} on node ${textAt(taken, "spec", "nodeName")}`;
  return found("attachment-mismatch", view, {
    names: { attachment, what },
    evidence: evidenceOf(view, taken),
    sinceMs: createdAt(taken),
  });
};

/** What a controller calls the VolumeAttachment of this volume on this node; empty where there can be none. */
function ownNameOf({ uniqueName, nodeName }: VolumeView): string {
  const csi = splitCsiVolume(splitVolumeName(uniqueName)?.pluginVolume ?? "");
  return csi === undefined || nodeName === "" ? "" : volumeAttachmentName(csi, nodeName);
}

export function evidenceOf(view: VolumeView, attachment: VolumeAttachment): Evidence[] {
  const named = `VolumeAttachment ${nameOf(attachment)}`;
  const volume = view.cluster.find("volumes", volumeOf(attachment));
  const handle = textAt(volume, "spec", "csi", "volumeHandle");
  return [
    seen(named, "spec.nodeName", textAt(attachment, "spec", "nodeName")),
    seen(named, "spec.source.persistentVolumeName", volumeOf(attachment)),
    ...(handle === ""
      ? []
      : [seen(`PersistentVolume ${volumeOf(attachment)}`, "spec.csi.volumeHandle", handle)]),
    seen(named, "status.attached", field(attachment, "status", "attached")),
  ];
}
