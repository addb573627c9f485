import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { volumeOf, type Cluster } from "./cluster.ts";
import { STANDING_COLUMNS, standing, type Column, type Standing } from "./columns.ts";
import { firstFinding } from "./diagnose.ts";
import { createdAt, field, idOf, isDeleting, nameOf, textAt } from "./fields.ts";
import { leftover } from "./leftovers.ts";
import { says, type Finding } from "./reasons/reasons.ts";
import { usersOf } from "./users.ts";
import { volumeViewsOf } from "./volume-view.ts";

export interface AttachmentRow extends Standing {
  readonly name: string;
  readonly volume: string;
  readonly node: string;
  readonly driver: string;
  /** `namespace/name` of the pods on that node that use it. */
  readonly pods: readonly string[];
}

export const ATTACHMENT_COLUMNS: readonly Column<AttachmentRow>[] = [
  { title: "VOLUME", text: ({ volume }) => volume },
  { title: "NODE", text: ({ node }) => node },
  { title: "DRIVER", wide: true, text: ({ driver }) => driver },
  { title: "PODS", text: ({ pods }) => pods.join(",") },
  { title: "ATTACHMENT", wide: true, text: ({ name }) => name },
  ...STANDING_COLUMNS,
];

export function attachmentRows(cluster: Cluster): readonly AttachmentRow[] {
  return cluster.objects.attachments.map((attachment) => {
    const finding = findingOf(cluster, attachment);
    return {
      ...standing(nameOf(attachment), stateOf(attachment), {
        sinceMs: finding?.sinceMs ?? createdAt(attachment),
        reason: finding?.reason,
        why: finding && says(finding),
      }),
      name: nameOf(attachment),
      volume: volumeOf(attachment) || "(inline)",
      node: textAt(attachment, "spec", "nodeName"),
      driver: textAt(attachment, "spec", "attacher"),
      pods: usersOf(cluster, attachment).map(idOf),
    };
  });
}

export function stateOf(attachment: VolumeAttachment): "attached" | "attaching" | "detaching" {
  if (isDeleting(attachment)) return "detaching";
  return field(attachment, "status", "attached") === true ? "attached" : "attaching";
}

/** Nobody wants it; else whatever the pod that wants it waits for. */
function findingOf(cluster: Cluster, attachment: VolumeAttachment): Finding | undefined {
  const left = leftover(cluster, attachment);
  if (left !== undefined || stateOf(attachment) === "attached") return left;
  return usersOf(cluster, attachment)
    .flatMap((pod) => volumeViewsOf(cluster, pod))
    .filter((view) => view.attachment === attachment)
    .flatMap((view) => firstFinding(view) ?? [])[0];
}
