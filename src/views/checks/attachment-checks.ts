import type { KubeEvent } from "../../kube/api/event.ts";
import { formatAge } from "../age.ts";
import { eventTime } from "../cluster.ts";
import { createdAt, field, idOf, isDeleting, nameOf, oneLine, textAt, textsAt, timeAt } from "../fields.ts";
import { isAttachedHere, nodeLists, type VolumeView } from "../volume-view.ts";
import type { MooringWait } from "../objects.ts";
import type { Evidence, Reason } from "../reasons/reasons.ts";
import { HEARD_WITHIN_MS, seenWait, triedAgain } from "./agent-checks.ts";
import { found, seen, type Check } from "./check.ts";
import { driverUninstalled } from "./uninstalled-checks.ts";

const attachmentNamed = ({ attachment }: VolumeView) => `VolumeAttachment ${nameOf(attachment)}`;

/** What the driver's codes mean, as the attacher writes them into messages. */
const ATTACH_ERRORS: readonly (readonly [RegExp, Reason])[] = [
  [/ResourceExhausted|too many|limit exceeded/i, "attach-exhausted"],
  [/PermissionDenied|Unauthenticated|AccessDenied|not authorized/i, "attach-denied"],
  [/already (attached|published|in use)|(is|was) attached to|detach it first/i, "attached-outside"],
];

/** What the driver says of another node is the cause only where no object says so: else that object has the cause. */
export const attachFailed: Check = (view) => {
  const message = textAt(view.attachment, "status", "attachError", "message");
  if (!view.needsAttach || message === "" || isAttachedHere(view) || isDeleting(view.attachment))
    return undefined;
  const reason = ATTACH_ERRORS.find(([pattern]) => pattern.test(message))?.[1] ?? "attach-failed";
  return found(reason, view, {
    names: { message: oneLine(message) },
    evidence: [seen(attachmentNamed(view), "status.attachError.message", message)],
    sinceMs: timeAt(view.attachment, "status", "attachError", "time"),
    next: attacherTriesAgain(view, view.nodeName),
  });
};

/** When the attacher, where it was asked, tries again what failed on a node: after pauses of up to five minutes. */
export function attacherTriesAgain({ cluster, pvName }: VolumeView, onNode: string): string | undefined {
  const wait = cluster
    .waitsAbout(pvName)
    .find(({ process, node, reason }) => process === "attacher" && node === onNode && reason === "backoff");
  return wait && triedAgain(cluster, wait);
}

export const attachmentDeleting: Check = (view) => {
  if (!view.needsAttach || !isDeleting(view.attachment)) return undefined;
  const finalizers = textsAt(view.attachment, "metadata", "finalizers");
  const message = textAt(view.attachment, "status", "detachError", "message");
  const evidence = [seen(attachmentNamed(view), "metadata.finalizers", finalizers.join(", "))];
  const uninstalled = driverUninstalled(view, view.attachment);
  if (uninstalled !== undefined) return uninstalled;
  if (message !== "") {
    evidence.unshift(seen(attachmentNamed(view), "status.detachError.message", message));
    const next = attacherTriesAgain(view, view.nodeName);
    return found("detach-failed", view, { names: { message: oneLine(message) }, evidence, next });
  }
  return found("attachment-deleting", view, {
    names: { finalizers: finalizers.join(", ") || "none" },
    evidence,
    sinceMs: timeAt(view.attachment, "metadata", "deletionTimestamp"),
  });
};

/** What Mooring says itself is not worked out again, wherever it was asked. */
export const mooringWaits: Check = (view) => mooringSays(view, { frozen: false });

/** Frozen is before everything about attaching: no other wait will end by itself while that lasts. */
export const mooringFrozen: Check = (view) => mooringSays(view, { frozen: true });

function mooringSays(view: VolumeView, { frozen }: { readonly frozen: boolean }): ReturnType<Check> {
  const { cluster, nodeName, uniqueName, pvName, pod } = view;
  const podId = `${textAt(pod, "metadata", "namespace")}/${nameOf(pod)}`;
  const [wait] = cluster.waitsAbout(uniqueName, pvName, podId).filter((item) => {
    if (item.frozen !== frozen || item.process === "node" || isOvertaken(view, item)) return false;
    if (item.pod !== "") return item.pod === podId && item.volume === view.volumeName;
    const same =
      (uniqueName !== "" && item.volume === uniqueName) ||
      (pvName !== "" && item.persistentVolume === pvName);
    return same && item.node === nodeName;
  });
  if (wait === undefined) return undefined;
  const behind = unheard(view, wait);
  if (behind !== undefined) return behind;
  const then =
    wait.untilMs === undefined
      ? "it goes on as soon as that changes"
      : `it is tried again in ${formatAge(wait.untilMs - cluster.nowMs)}`;
  return found(frozen ? "controller-frozen" : "controller-waits", view, {
    names: { process: wait.process, waiting: wait.reason, message: oneLine(wait.message), then },
    evidence: [seenWait(wait)],
    sinceMs: wait.sinceMs,
  });
}

/** Its node has all that a controller gives it: whatever the controller has not heard of yet, the pod does not wait for that. */
function isOvertaken(view: VolumeView, { process, reason, message }: MooringWait): boolean {
  if (process !== "controller" || !isAttachedHere(view) || !nodeLists(view.node, view.uniqueName))
    return false;
  // As the controller says it of a volume that it attaches; one that it detaches is to be listed no more.
  return (
    reason === "driver-attaching" || (reason === "node-status" && message.includes("to list it as attached"))
  );
}

/** What the objects have had for a while and the controller waits for: its word is old, and its watch is silent or late. */
function unheard(view: VolumeView, wait: MooringWait): ReturnType<Check> {
  const { cluster, attachment, pvName, nodeName } = view;
  if (wait.process !== "controller" || cluster.nowMs - (wait.sinceMs ?? cluster.nowMs) < HEARD_WITHIN_MS)
    return undefined;
  const behind = (fact: string, evidence: Evidence) =>
    found("controller-behind", view, {
      names: { waiting: wait.reason, fact },
      evidence: [seenWait(wait), evidence],
      sinceMs: wait.sinceMs,
    });
  if (wait.reason === "driver-attaching" && isAttachedHere(view))
    return behind(
      `${attachmentNamed(view)} says that it is attached`,
      seen(attachmentNamed(view), "status.attached", "true"),
    );
  if (wait.reason !== "driver-detaching" || attachment !== undefined || !cluster.knows("attachments"))
    return undefined;
  return behind(
    `no VolumeAttachment has PersistentVolume ${pvName} on node ${nodeName} any more`,
    seen("VolumeAttachments", `of ${pvName} on ${nodeName}`, ""),
  );
}

/** Before there is a VolumeAttachment, an event of the pod is all that the controller can say. */
export const attachRefused: Check = (view) => {
  const { cluster, needsAttach, nodeName, attachment, pod } = view;
  if (!needsAttach || nodeName === "" || attachment !== undefined || pod === undefined) return undefined;
  const event = cluster
    .eventsOf("Pod", idOf(pod))
    .find((item) => textAt(item, "reason") === "FailedAttachVolume" && isAbout(view, item));
  const message = textAt(event, "message");
  // That another node has it is told by that node's attachment, and is over where there is none.
  if (message === "" || /^Multi-Attach error/.test(message)) return undefined;
  return found("attach-refused", view, {
    names: { message: oneLine(message) },
    evidence: [seen(`Event of Pod ${idOf(pod)}`, "FailedAttachVolume", message)],
    sinceMs: eventTime(event as KubeEvent),
  });
};

function isAbout({ pvName }: VolumeView, event: KubeEvent): boolean {
  const named = /for volume "([^"]+)"/.exec(textAt(event, "message"))?.[1];
  return named === undefined || named === pvName;
}

export const attachmentNotCreated: Check = (view) => {
  const { cluster, needsAttach, nodeName, attachment } = view;
  if (!needsAttach || nodeName === "" || attachment !== undefined || !cluster.knows("attachments"))
    return undefined;
  const evidence = [seen("VolumeAttachments", `of ${view.pvName} on ${nodeName}`, "")];
  return found("attachment-not-created", view, { evidence, sinceMs: createdAt(view.pod) });
};

/** An attacher puts its finalizer on before it asks the driver: without one, nobody has seen the attachment. */
export const notAttached: Check = (view) => {
  const { attachment } = view;
  if (!view.needsAttach || attachment === undefined || isAttachedHere(view)) return undefined;
  const finalizers = textsAt(attachment, "metadata", "finalizers");
  return found(finalizers.length === 0 ? "attacher-missing" : "driver-attaching", view, {
    evidence: [
      seen(attachmentNamed(view), "status.attached", field(attachment, "status", "attached") ?? "not set"),
      seen(attachmentNamed(view), "metadata.finalizers", finalizers.join(", ")),
    ],
    sinceMs: createdAt(attachment),
  });
};

export const nodeStatusBehind: Check = (view) => {
  const { node, uniqueName } = view;
  if (!isAttachedHere(view) || node === undefined || uniqueName === "" || nodeLists(node, uniqueName))
    return undefined;
  const evidence = [
    seen(attachmentNamed(view), "status.attached", "true"),
    seen(`Node ${view.nodeName}`, "status.volumesAttached", `not ${uniqueName}`),
  ];
  return found("node-status", view, { evidence, sinceMs: createdAt(view.attachment) });
};
