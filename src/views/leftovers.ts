import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { claimKeysOf } from "../volumes/resolve.ts";
import { volumeOf, type Cluster } from "./cluster.ts";
import { readinessOf } from "./conditions.ts";
import { failedUnmount, unmountFinding } from "./checks/agent-checks.ts";
import { found, seen } from "./checks/check.ts";
import { evidenceOf } from "./checks/foreign-checks.ts";
import { driverUninstalled } from "./checks/uninstalled-checks.ts";
import { createdAt, isDeleting, nameOf, oneLine, textAt, textsAt, timeAt } from "./fields.ts";
import type { Finding, Reason } from "./reasons/reasons.ts";
import { usersOf } from "./users.ts";
import { attachmentView, type VolumeView } from "./volume-view.ts";

/** Why an attachment that nobody uses is still there; undefined for one that is used, or may be. */
export function leftover(cluster: Cluster, attachment: VolumeAttachment): Finding | undefined {
  const view = attachmentView(cluster, attachment);
  if (isDeleting(attachment)) return detaching(view);
  if (cluster.disks().isForeign(attachment)) return foreign(view, attachment);
  return mayBeWanted(cluster, attachment) ? undefined : unwanted(view);
}

function detaching(view: VolumeView): Finding {
  const message = textAt(view.attachment, "status", "detachError", "message");
  const named = `VolumeAttachment ${nameOf(view.attachment)}`;
  const uninstalled = driverUninstalled(view, view.attachment);
  if (uninstalled !== undefined) return uninstalled;
  if (message !== "") {
    const evidence = [seen(named, "status.detachError.message", message)];
    const sinceMs = timeAt(view.attachment, "status", "detachError", "time");
    return found("detach-failed", view, { names: { message: oneLine(message) }, evidence, sinceMs });
  }
  const finalizers = textsAt(view.attachment, "metadata", "finalizers").join(", ");
  return found("driver-detaching", view, {
    names: { finalizers: finalizers || "none" },
    evidence: [seen(named, "metadata.finalizers", finalizers)],
    sinceMs: timeAt(view.attachment, "metadata", "deletionTimestamp"),
  });
}

/** Beside a pod that uses the volume, the pod's own explanation says it. */
function foreign(view: VolumeView, attachment: VolumeAttachment): Finding | undefined {
  if (usersOf(view.cluster, attachment).length > 0) return undefined;
  const then = "it stays until whoever made it deletes it; no controller does";
  return found("foreign-attachment", view, {
    names: { then, pv: view.pvName || "(inline)" },
    evidence: evidenceOf(view, attachment),
    sinceMs: createdAt(attachment),
  });
}

/** Unsure means yes: a pod whose claim cannot be read, or a source written into a pod, may want it. */
function mayBeWanted(cluster: Cluster, attachment: VolumeAttachment): boolean {
  if (!cluster.knows("pods") || !cluster.knows("volumes") || volumeOf(attachment) === "") return true;
  if (usersOf(cluster, attachment).length > 0) return true;
  const pods = cluster.podsOn(textAt(attachment, "spec", "nodeName"));
  return pods.some((pod) => claimKeysOf(pod).some((key) => cluster.find("claims", key) === undefined));
}

function unwanted(view: VolumeView): Finding {
  const { node, nodeName, pv, uniqueName } = view;
  const inUse = textsAt(node, "status", "volumesInUse");
  const unmount = failedUnmount(view.cluster, nodeName, uniqueName);
  if (unmount !== undefined) return unmountFinding(view, unmount);
  if (uniqueName !== "" && inUse.includes(uniqueName)) {
    const { ready, condition } = readinessOf(node);
    const then = ready
      ? "it is detached as soon as the kubelet there has unmounted it; on a healthy node it is never forced"
      : `node ${nodeName} is not ready (${condition}): it is detached by force 6 min after the last pod there was gone`;
    const evidence = [seen(`Node ${nodeName}`, "status.volumesInUse", uniqueName)];
    return found("still-mounted", view, { names: { then }, evidence, sinceMs: createdAt(view.attachment) });
  }
  // Without the volume nobody knows its name on the node, and a node that is gone says nothing.
  const knowsUnmounted = node !== undefined && readinessOf(node).ready && uniqueName !== "";
  const reason: Reason = knowsUnmounted ? "attachment-orphaned" : "attachment-orphaned-unsure";
  const orphanhood = pv === undefined ? "does not exist" : "is used by no pod there";
  return found(reason, view, {
    names: { orphanhood },
    evidence: [
      seen(`VolumeAttachment ${nameOf(view.attachment)}`, "spec.source.persistentVolumeName", view.pvName),
      seen(`Node ${nodeName}`, "status.volumesInUse", inUse.join(", ")),
    ],
    sinceMs: createdAt(view.attachment),
  });
}
