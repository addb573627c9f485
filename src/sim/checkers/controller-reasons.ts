import { isUnread } from "../../kube/api/node.ts";
import type { WaitingReason } from "../../attach-detach/waiting.ts";
import { MANAGED_ANNOTATION } from "../cluster-objects.ts";
import { isOver, never, requestUnderWay, unless, type Judge } from "./judge.ts";

/** What has to be so where the attach/detach controller gives a reason. */
export const CONTROLLER_JUDGES: Readonly<Record<WaitingReason, Judge>> = {
  "claim-missing": ({ object }, facts) =>
    unless(facts.claim(object.name, object.namespace ?? "") === undefined, "the claim exists"),
  "claim-unbound": ({ object }, facts) => {
    const claim = facts.claim(object.name, object.namespace ?? "");
    if (claim === undefined) return "the claim does not exist";
    const isBound = claim.status?.phase === "Bound" && claim.spec?.volumeName !== undefined;
    return unless(!isBound, "the claim is bound");
  },
  "claim-not-owned": never("no pod has an ephemeral volume"),
  "volume-missing": ({ object }, facts) =>
    unless(facts.volume(object.name) === undefined, "the PersistentVolume exists"),
  "volume-not-bound-back": ({ object, pod }, facts) => {
    const claimRef = facts.volume(object.name)?.spec?.claimRef;
    const names = facts.pod(pod)?.spec?.volumes?.map((use) => use.persistentVolumeClaim?.claimName) ?? [];
    const claim = names.map((name) => facts.claim(name ?? "", claimRef?.namespace ?? ""));
    return unless(
      !claim.some((one) => one !== undefined && one.metadata.uid === claimRef?.uid),
      "the PersistentVolume names the claim of the pod",
    );
  },
  untranslatable: ({ object }, facts) =>
    unless(facts.volume(object.name)?.spec?.csi === undefined, "the PersistentVolume has a CSI source"),

  "node-missing": ({ object }, facts) => unless(facts.node(object.name) === undefined, "the Node exists"),
  "node-not-managed": ({ object }, facts) =>
    unless(
      facts.node(object.name)?.metadata.annotations?.[MANAGED_ANNOTATION] !== "true",
      "the Node has the annotation",
    ),
  "held-by-other-node": ({ object, handle, node }, facts) => {
    if (object.name === node) return "it is the node itself that is named";
    return unless(
      facts.isClaimedOn(object.name, handle) ||
        facts.isPublishedOn(handle, object.name) ||
        facts.isListedAttached(handle, object.name),
      `${object.name} has neither a VolumeAttachment of the volume nor the volume`,
    );
  },
  "api-request": requestUnderWay,
  "driver-attaching": ({ handle, node }, facts) =>
    unless(
      facts.attachmentsOn(node, handle).some(({ status }) => status?.attached !== true),
      "there is no VolumeAttachment that is not attached yet",
    ),
  "driver-detaching": ({ handle, node }, facts) =>
    unless(
      facts.attachmentsOn(node, handle).some(({ metadata }) => metadata.deletionTimestamp !== undefined),
      "there is no VolumeAttachment that is being deleted",
    ),
  // That the last attempt failed nobody else can tell; that the next is due can be told.
  backoff: isOver,
  "node-status": (wait, facts) => {
    const { handle, node, message, leftMs } = wait;
    if (leftMs !== undefined) return isOver(wait, facts);
    if (facts.node(node) === undefined) return undefined;
    const isListed = facts.isListedAttached(handle, node);
    if (message.includes("to list it as attached")) return unless(!isListed, "the node lists it");
    return unless(isListed, "the node does not list it");
  },
  "still-mounted": ({ handle, node, leftMs }, facts) =>
    unless(
      facts.isListedInUse(handle, node) ||
        facts.isMountedOn(handle, node) ||
        !facts.isReady(node) ||
        isUnread(facts.node(node)) ||
        (leftMs !== undefined && leftMs > 0),
      "it is neither mounted nor in volumesInUse, and the node is ready",
    ),
  "foreign-attachment": ({ object, node }, facts) => {
    const attachment = facts.attachment(object.name);
    if (attachment === undefined) return "the VolumeAttachment does not exist";
    return unless(attachment.spec.nodeName === node, `it is for node ${attachment.spec.nodeName}`);
  },
  "unknown-plugin": never("every volume is one of a CSI driver"),
  "unresolved-pod": ({ object, node }, facts) => {
    const pod = facts.pod(`${object.namespace ?? ""}/${object.name}`);
    if (pod === undefined) return "the pod does not exist";
    return unless(pod.spec?.nodeName === node, `the pod is on ${pod.spec?.nodeName ?? "no node"}`);
  },
  "attachment-mismatch": ({ object, handle, node }, facts) => {
    const attachment = facts.attachment(object.name);
    if (attachment === undefined) return "the VolumeAttachment does not exist";
    const { attacher, nodeName } = attachment.spec;
    const fits =
      attacher === facts.driverOf(handle) && nodeName === node && facts.handleOf(attachment) === handle;
    return unless(!fits, "it is for this volume on this node");
  },
  // Judged only of a process whose network has been good for longer than a watch may be silent.
  "stale-cache": never("the server can be heard"),
  "policy-never": never("the policy of this cluster forces after a time"),
};
