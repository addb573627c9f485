import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { formatAge } from "../age.ts";
import { isOutOfService, readinessOf } from "../conditions.ts";
import { createdAt, field, idOf, isDeleting, nameOf, oneLine, textAt, textsAt, timeAt } from "../fields.ts";
import type { MooringWait } from "../objects.ts";
import type { Finding, Reason } from "../reasons/reasons.ts";
import { isAttachedHere, nodeLists, type VolumeView } from "../volume-view.ts";
import { volumeOf } from "../cluster.ts";
import { usersOf } from "../users.ts";
import { evidenceOf } from "./foreign-checks.ts";
import { busyHelp, failedUnmount, leftBy, seenWait, triedAgain, whyBusy } from "./agent-checks.ts";
import { attacherTriesAgain } from "./attachment-checks.ts";
import { found, seen, type Check } from "./check.ts";
import { driverUninstalled } from "./uninstalled-checks.ts";

/** Another node that has a volume which only one may have. */
interface Holder {
  readonly view: VolumeView;
  readonly attachment: VolumeAttachment;
  readonly name: string;
  readonly node: Node | undefined;
  /** Pods there that use the same claim. */
  readonly pods: readonly Pod[];
}

/**
 * Multi-attach, told by its cause: a machine that is gone or silent explains everything else about it, a pod that
 * uses the volume explains why nobody detaches, and only then is it the detach itself. All of several holders have to
 * let go: the first sentence names them, and each is explained, the one that is least likely to go by itself first.
 */
export const heldByOtherNode: Check = (view) => {
  const { otherAttachments, exclusive, nodeName } = view;
  if (otherAttachments.length === 0 || !exclusive || nodeName === "" || isAttachedHere(view))
    return undefined;
  const holders = otherAttachments.map((attachment) => holderOf(view, attachment));
  const explained = holders.map((holder) => explainHolder(holder)).sort((a, b) => a.rank - b.rank);
  const [first, ...alike] = explained.map(({ finding }) => finding);
  if (first === undefined || alike.length === 0) return first;
  const others = alike.map(({ names }) => names["holder"]).join(", ");
  const too = `it is attached to ${others} too`;
  return { ...first, besides: first.besides === undefined ? too : `${first.besides}; ${too}`, alike };
};

function explainHolder(holder: Holder): { readonly rank: number; readonly finding: Finding } {
  if (holder.view.cluster.disks().isForeign(holder.attachment))
    return { rank: -1, finding: foreignHolder(holder) };
  const [unhealthy, using] = [unhealthyHolder(holder), usingHolder(holder)];
  if (unhealthy) return { rank: 0, finding: unhealthy };
  return using ? { rank: 1, finding: using } : { rank: 2, finding: leavingHolder(holder) };
}

function holderOf(view: VolumeView, attachment: VolumeAttachment): Holder {
  const name = textAt(attachment, "spec", "nodeName");
  // Of another PersistentVolume of the same disk, other claims.
  const users = new Set([...view.cluster.podsOfClaim(view.claimId), ...usersOf(view.cluster, attachment)]);
  const pods = view.cluster.podsOn(name).filter((pod) => users.has(pod));
  return { view, attachment, name, node: view.cluster.find("nodes", name), pods };
}

/** Nothing else about its node matters: it goes when its owner deletes it, and not before. */
function foreignHolder(holder: Holder): Finding {
  const { view, attachment } = holder;
  const [, ...evidence] = evidenceOf(view, attachment);
  const other = volumeOf(attachment);
  const besides =
    other === "" || other === view.pvName ? undefined : `it names the same disk as PersistentVolume ${other}`;
  const finding = held(
    "held-by-foreign-attachment",
    holder,
    {},
    seen(`Node ${holder.name}`, "status.volumesInUse", usesIt(holder)),
  );
  return { ...finding, besides, evidence: [...finding.evidence, ...evidence] };
}

function usesIt({ node, view }: Holder): string {
  return textsAt(node, "status", "volumesInUse").includes(view.uniqueName) ? "lists it" : "";
}

function unhealthyHolder(holder: Holder): Finding | undefined {
  const { view, node, name, pods } = holder;
  if (node === undefined) {
    if (!view.cluster.knows("nodes")) return undefined;
    return held("held-by-missing-node", holder, {}, seen("Node", "metadata.name", `no ${name}`));
  }
  const { ready, condition, sinceMs } = readinessOf(node);
  if (isOutOfService(node)) {
    const others = pods.length === 0 ? "they are" : pods.map(idOf).join(", ");
    const taint = seen(`Node ${name}`, "spec.taints", "node.kubernetes.io/out-of-service");
    return held("held-by-fenced-node", holder, { others }, taint);
  }
  if (ready) return undefined;
  const seenReady = seen(`Node ${name}`, "status.conditions[Ready]", condition);
  return {
    ...held("held-by-not-ready-node", holder, { condition, then: forceIn(holder) }, seenReady),
    sinceMs,
  };
}

/** Upstream's: unhealthy for this long after nobody wants the volume there any more. */
const FORCE_AFTER_MS = 360_000;

/** The time of the force is the controller's to know; what can be said from objects is what it waits for first. */
function forceIn({ view, pods, name }: Holder): string {
  const { cluster, uniqueName, pvName } = view;
  const wait = cluster
    .waitsAbout(uniqueName, pvName)
    .find(({ process, node }) => process === "controller" && node === name);
  if (wait?.reason === "policy-never") return "never by itself: the detach policy forbids to force it";
  if (wait?.untilMs !== undefined) {
    return `the controller takes it by force in ${formatAge(wait.untilMs - cluster.nowMs)}, if the node stays silent`;
  }
  if (pods.length > 0) {
    return `never by itself while pod ${pods.map(idOf).join(", ")} exists: the node cannot say that it ended; ${formatAge(FORCE_AFTER_MS)} after it is gone the controller takes the volume by force`;
  }
  return `the controller takes it by force ${formatAge(FORCE_AFTER_MS)} after the last pod there was gone, if the node stays silent`;
}

function usingHolder(holder: Holder): Finding | undefined {
  const { pods, view } = holder;
  const pod = pods.find((item) => !isDeleting(item)) ?? pods[0];
  if (pod === undefined) return undefined;
  const others = pods.filter((item) => item !== pod).map(idOf);
  const besides = others.length === 0 ? undefined : `so does pod ${others.join(", ")}`;
  const names = {
    other: idOf(pod),
    otherName: nameOf(pod),
    otherNs: textAt(pod, "metadata", "namespace"),
  };
  if (!isDeleting(pod)) {
    const phase = seen(`Pod ${idOf(pod)}`, "status.phase", textAt(pod, "status", "phase"));
    return { ...held("held-by-running-pod", holder, names, phase), besides };
  }
  const unmount = failedUnmount(view.cluster, holder.name, view.uniqueName);
  if (unmount !== undefined) return unmountHeld(holder, unmount);
  const at = timeAt(pod, "metadata", "deletionTimestamp");
  const leftMs = at === undefined ? 0 : at - view.cluster.nowMs;
  const killed = leftMs > 0 ? `in ${formatAge(leftMs)}` : `${formatAge(-leftMs)} ago, or should have been`;
  const deletion = seen(
    `Pod ${idOf(pod)}`,
    "metadata.deletionTimestamp",
    field(pod, "metadata", "deletionTimestamp"),
  );
  return { ...held("held-by-terminating-pod", holder, { ...names, killed }, deletion), besides };
}

/** The containers have ended, and the node itself says what keeps it. */
function unmountHeld(holder: Holder, wait: MooringWait): Finding {
  const names = { from: leftBy(wait), message: whyBusy(wait.message) };
  return {
    ...held("holder-unmount-failed", holder, names, seenWait(wait)),
    sinceMs: wait.sinceMs,
    next: triedAgain(holder.view.cluster, wait),
    help: busyHelp("{holder}", wait),
  };
}

/** Nobody uses it there any more: what keeps it is the unmount, the driver, or that nobody detaches. */
function leavingHolder(holder: Holder): Finding {
  const { attachment, node, view, name } = holder;
  const message = textAt(attachment, "status", "detachError", "message");
  const named = `VolumeAttachment ${nameOf(attachment)}`;
  const uninstalled = driverUninstalled(view, attachment);
  if (uninstalled !== undefined) return uninstalled;
  if (message !== "") {
    const error = seen(named, "status.detachError.message", message);
    const finding = held("holder-detach-failed", holder, { message: oneLine(message) }, error);
    return { ...finding, next: attacherTriesAgain(view, name) };
  }
  if (isDeleting(attachment)) {
    const finalizers = seen(named, "metadata.finalizers", field(attachment, "metadata", "finalizers"));
    return held("holder-detaching", holder, {}, finalizers);
  }
  const unmount = failedUnmount(view.cluster, name, view.uniqueName);
  if (unmount !== undefined) return unmountHeld(holder, unmount);
  if (view.uniqueName !== "" && textsAt(node, "status", "volumesInUse").includes(view.uniqueName)) {
    const inUse = seen(`Node ${name}`, "status.volumesInUse", view.uniqueName);
    return held("holder-still-mounted", holder, {}, inUse);
  }
  const wait = waitOfController(holder);
  if (wait !== undefined) return releaseWaits(holder, wait);
  const listed = seen(
    `Node ${name}`,
    "status.volumesAttached",
    nodeLists(node, view.uniqueName) ? "lists it" : "",
  );
  return held("holder-not-released", holder, {}, listed);
}

/** Of a VolumeAttachment that is not being deleted these speak of what was, or of what is to come within moments. */
const OF_DRIVER = ["driver-attaching", "driver-detaching"];

/** What Mooring's controller says itself of the volume there, where it was asked. */
function waitOfController({ view: { cluster, uniqueName, pvName }, name }: Holder): MooringWait | undefined {
  return cluster
    .waitsAbout(uniqueName, pvName)
    .filter(({ process, node, pod }) => process === "controller" && node === name && pod === "")
    .find(({ reason }) => !OF_DRIVER.includes(reason));
}

function releaseWaits({ view, attachment, name }: Holder, wait: MooringWait): Finding {
  return found("controller-waits", view, {
    names: {
      ...{ process: wait.process, waiting: wait.reason, message: oneLine(wait.message), holder: name },
      then: triedAgain(view.cluster, wait) ?? "it is detached there as soon as that changes",
    },
    besides: `PersistentVolume ${view.pvName} is attached to node ${name}, where no pod uses it`,
    evidence: [seenWait(wait), seen(`VolumeAttachment ${nameOf(attachment)}`, "spec.nodeName", name)],
    sinceMs: wait.sinceMs,
  });
}

function held(
  reason: Reason,
  { view, attachment, name }: Holder,
  names: Readonly<Record<string, string>>,
  evidence: ReturnType<typeof seen>,
): Finding {
  return found(reason, view, {
    names: { holder: name, attachment: nameOf(attachment), ...names },
    evidence: [seen(`VolumeAttachment ${nameOf(attachment)}`, "spec.nodeName", name), evidence],
    sinceMs: createdAt(attachment),
  });
}
