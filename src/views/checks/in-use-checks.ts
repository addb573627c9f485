import { formatAge } from "../age.ts";
import { contradictionsOf, inWords } from "../consistency/contradictions.ts";
import { hasStarted, waitingContainer } from "../conditions.ts";
import { createdAt, field, idOf, isDeleting, nameOf, oneLine, textAt, textsAt, timeAt } from "../fields.ts";
import type { Reason } from "../reasons/reasons.ts";
import type { VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";

/*
 * A pod that runs has every link to its data. One that went away under it does not stop the pod, and the pod still says that
 * it runs: only the other links tell.
 */

/** Somebody deletes the VolumeAttachment of a volume in use: its driver takes the disk from under the pod. */
export const detachedInUse: Check = (view) => {
  const { attachment, needsAttach } = view;
  if (!isInUse(view) || !needsAttach || attachment === undefined) return undefined;
  const named = `VolumeAttachment ${nameOf(attachment)}`;
  if (isDeleting(attachment))
    return found("detaching-in-use", view, {
      evidence: [
        seen(named, "metadata.deletionTimestamp", field(attachment, "metadata", "deletionTimestamp")),
        seen(`Pod ${idOf(view.pod)}`, "status.phase", textAt(view.pod, "status", "phase")),
      ],
      sinceMs: timeAt(attachment, "metadata", "deletionTimestamp"),
    });
  if (field(attachment, "status", "attached") === true) return undefined;
  const error = textAt(attachment, "status", "attachError", "message");
  return found("detached-in-use", view, {
    evidence: [
      seen(named, "status.attached", field(attachment, "status", "attached") ?? "not set"),
      seen(`Pod ${idOf(view.pod)}`, "status.phase", textAt(view.pod, "status", "phase")),
    ],
    ...(error !== "" && { besides: `attaching it again fails: ${oneLine(error)}` }),
    sinceMs: createdAt(attachment),
  });
};

/** The node lists it and the pod runs with it; the object that says so to everybody else is gone. */
export const attachmentGone: Check = (view) => {
  const missing = contradictionsOf(view).find(({ between }) => between === "pod and VolumeAttachment");
  if (missing === undefined || view.attachment !== undefined || view.foreign.length > 0) return undefined;
  return found("attachment-gone", view, {
    evidence: [
      seen("VolumeAttachments", `of ${view.pvName} on ${view.nodeName}`, ""),
      seen(`Pod ${idOf(view.pod)}`, "status.phase", textAt(view.pod, "status", "phase")),
    ],
  });
};

/** No check knows what is wrong, and yet not everything can be so: better said than guessed. */
export const contradiction: Check = (view) => {
  const all = contradictionsOf(view);
  if (all.length === 0) return undefined;
  return found("contradiction", view, {
    names: { facts: all.map(inWords).join("; and ") },
    evidence: all.map(({ between, one, other }) => seen(between, one, other)),
  });
};

/** A kubelet ends a pod within its grace period; past it by this much, something keeps it. */
const LATE_MS = 60_000;

/** Ends, and should have ended long ago: its volumes stay where they are until it has. */
export const notEnded: Check = (view) => {
  const { pod, cluster, nodeName } = view;
  const dueMs = timeAt(pod, "metadata", "deletionTimestamp");
  if (pod === undefined || dueMs === undefined || cluster.nowMs - dueMs < LATE_MS) return undefined;
  const finalizers = textsAt(pod, "metadata", "finalizers");
  const keeps =
    finalizers.length > 0
      ? `its finalizers keep it (${finalizers.join(", ")})`
      : `node ${nodeName || "it was given"} has not said that its containers have stopped`;
  return found("pod-not-ended", view, {
    names: { keeps, late: formatAge(cluster.nowMs - dueMs) },
    evidence: [
      seen(`Pod ${idOf(pod)}`, "metadata.deletionTimestamp", textAt(pod, "metadata", "deletionTimestamp")),
      seen(`Pod ${idOf(pod)}`, "metadata.finalizers", finalizers.join(", ")),
    ],
    sinceMs: dueMs,
  });
};

/** Its volumes are well; one of its containers is not. */
export const containerWaiting: Check = (view) => {
  const waiting = waitingContainer(view.pod);
  if (waiting === undefined || !isInUse(view)) return undefined;
  return found(containerReason(waiting.message), view, {
    names: { container: waiting.name, message: oneLine(waiting.message) },
    evidence: [seen(`Pod ${idOf(view.pod)}`, `status.containerStatuses[${waiting.name}]`, waiting.message)],
  });
};

/** Runtimes name a part of a volume, or its directory, where it is the volume that they cannot use. */
export function containerReason(message: string): Reason {
  return /subPath|\/volumes\/kubernetes\.io|\/volume-subpaths\/|error (setting up|mounting)|failed to (mount|stat)/i.test(
    message,
  )
    ? "container-volume"
    : "container-waiting";
}

function isInUse({ pod }: VolumeView): boolean {
  const phase = textAt(pod, "status", "phase");
  return (
    pod !== undefined && hasStarted(pod) && !isDeleting(pod) && phase !== "Succeeded" && phase !== "Failed"
  );
}
