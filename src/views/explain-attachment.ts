import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { formatAge } from "./age.ts";
import { stateOf } from "./attachments.ts";
import { chainOf } from "./chain.ts";
import { attachFailed, notAttached } from "./checks/attachment-checks.ts";
import { found, seen, type Check } from "./checks/check.ts";
import { evidenceOf } from "./checks/foreign-checks.ts";
import { driverNotRegistered, nodeNotReady } from "./checks/node-checks.ts";
import { volumeOf, type Cluster } from "./cluster.ts";
import { contradictionsOf, inWords } from "./consistency/contradictions.ts";
import { diagnoseVolume } from "./diagnose.ts";
import { explanation, type Explanation } from "./explanation.ts";
import { createdAt, idOf, isDeleting, nameOf, textAt, timeAt } from "./fields.ts";
import { leftover } from "./leftovers.ts";
import type { Finding } from "./reasons/reasons.ts";
import { usersOf } from "./users.ts";
import { attachmentView, volumeViewsOf, type VolumeView } from "./volume-view.ts";
import { isOwnAttachmentName } from "../volumes/names.ts";

/** A VolumeAttachment: whose it is, whether the disk is where it says, and why it does not go. */
export function explainAttachment(cluster: Cluster, name: string): Explanation | undefined {
  const attachment = cluster.find("attachments", name);
  if (attachment === undefined) return undefined;
  const users = usersOf(cluster, attachment);
  const views = users.flatMap((pod) => volumeViewsOf(cluster, pod)).filter((view) => has(view, attachment));
  const alone = aloneView(cluster, attachment);
  return explanation(cluster, {
    subject: `VolumeAttachment ${name}`,
    lead: (blocks) => blocks,
    healthy: healthy(cluster, attachment, users.map(idOf)),
    findings: findingsOf(alone, attachment, views),
    chain: chainOf(views[0] ?? alone),
    others: users.map(usedBy),
    facts: [whose(cluster, attachment)],
    contradictions: views.flatMap(contradictionsOf).map(inWords),
  });
}

/** Itself, whoever wants it there; what else has the disk is told beside it. */
function aloneView(cluster: Cluster, attachment: VolumeAttachment): VolumeView {
  const view = attachmentView(cluster, attachment);
  const otherAttachments = view.otherAttachments.filter((item) => item !== attachment);
  return { ...view, otherAttachments, needsAttach: true };
}

function has(view: VolumeView, attachment: VolumeAttachment): boolean {
  return view.attachment === attachment || view.foreign.includes(attachment);
}

/** Of an attachment by itself, in causal order: a node or driver that is gone explains that nothing is attached. */
const PENDING_CHECKS: readonly Check[] = [nodeNotReady, driverNotRegistered, attachFailed, notAttached];

function findingsOf(
  alone: VolumeView,
  attachment: VolumeAttachment,
  views: readonly VolumeView[],
): readonly Finding[] {
  const { cluster } = alone;
  const left = leftover(cluster, attachment);
  const pending =
    stateOf(attachment) === "attaching" ? PENDING_CHECKS.flatMap((check) => check(alone) ?? []) : [];
  return [
    ...nodeGone(alone, attachment),
    ...(left === undefined ? [] : [left]),
    ...foreignInUse(alone, attachment, views),
    ...views.flatMap(diagnoseVolume),
    ...pending.slice(0, 1),
  ];
}

/** Its machine cannot say any more that the volume is unmounted: that explains whatever else is wrong with it. */
function nodeGone(view: VolumeView, attachment: VolumeAttachment): readonly Finding[] {
  const { cluster, node, nodeName } = view;
  if (node !== undefined || nodeName === "" || !cluster.knows("nodes")) return [];
  return [
    found("held-by-missing-node", view, {
      names: { holder: nodeName, attachment: nameOf(attachment), pv: view.pvName || "(inline)" },
      evidence: [
        seen(`VolumeAttachment ${nameOf(attachment)}`, "spec.nodeName", nodeName),
        seen("Node", "metadata.name", `no ${nodeName}`),
      ],
      sinceMs: createdAt(attachment),
    }),
  ];
}

/** Nobody's leftover, since a pod uses the disk, and yet no controller's: whoever deletes it takes the disk away. */
function foreignInUse(
  view: VolumeView,
  attachment: VolumeAttachment,
  views: readonly VolumeView[],
): readonly Finding[] {
  if (!view.cluster.disks().isForeign(attachment) || isDeleting(attachment) || views.length === 0) return [];
  const pods = views.map(({ pod }) => idOf(pod)).join(", ");
  return [
    found("foreign-attachment", view, {
      names: {
        pv: view.pvName || "(inline)",
        then: `it stays until whoever made it deletes it; pod ${pods} would lose the disk then`,
      },
      evidence: evidenceOf(view, attachment),
      sinceMs: createdAt(attachment),
    }),
  ];
}

function healthy(cluster: Cluster, attachment: VolumeAttachment, users: readonly string[]): string {
  const [node, driver] = [textAt(attachment, "spec", "nodeName"), textAt(attachment, "spec", "attacher")];
  const since = createdAt(attachment);
  const age = since === undefined ? "" : ` for ${formatAge(cluster.nowMs - since)}`;
  const use =
    users.length > 0
      ? `pod ${users.join(", ")} uses it there`
      : "a pod there may still want it, which could not be ruled out";
  return `VolumeAttachment ${nameOf(attachment)} is healthy: driver ${driver} has had PersistentVolume ${volumeOf(attachment) || "(inline)"} on node ${node}${age}, and ${use}; nothing blocks it`;
}

/** The name says who made it: controllers give one that driver, handle and node determine. */
function whose(cluster: Cluster, attachment: VolumeAttachment): string {
  if (!cluster.disks().isForeign(attachment))
    return "made by an attach/detach controller (its name is the digest of driver, handle and node)";
  return isOwnAttachmentName(nameOf(attachment))
    ? "its name is a controller's, but of another disk or node than it says: no controller touches it"
    : "made by hand or by another tool (no controller gives such a name): no controller deletes it";
}

function usedBy(pod: object): string {
  const ending = timeAt(pod, "metadata", "deletionTimestamp") === undefined ? "" : ", which is ending";
  return `pod ${idOf(pod)} uses it${ending}`;
}
