import type { KubeEvent } from "../../kube/api/event.ts";
import { eventTime } from "../cluster.ts";
import { waitingContainer } from "../conditions.ts";
import { createdAt, idOf, oneLine, textAt, textsAt } from "../fields.ts";
import type { MooringWait } from "../objects.ts";
import type { Evidence, Finding, Reason } from "../reasons/reasons.ts";
import { isAttachedHere, nodeLists, type VolumeView } from "../volume-view.ts";
import { failureOf, seenWait, triedAgain } from "./agent-checks.ts";
import { found, seen, type Check } from "./check.ts";

const FAILURES = new Set([
  "FailedMount",
  "FailedMapVolume",
  "FailedMountOnFilesystemMismatch",
  "VolumeResizeFailed",
]);
const FS_GROUP = "VolumePermissionChangeInProgress";

/** What a kubelet's or a driver's message means; the more exact before the more general. */
const MEANINGS: readonly (readonly [RegExp, Reason])[] = [
  [/not found in the list of registered CSI drivers/i, "mount-driver-not-registered"],
  [/secrets? "[^"]*" (not found|is forbidden)|secret .*not found/i, "secret-missing"],
  [/configmaps? "[^"]*" (not found|is forbidden)|config ?map .*not found/i, "config-map-missing"],
  [
    /fsck|UNEXPECTED INCONSISTENCY|file ?system (has errors|is corrupt)|structure needs cleaning/i,
    "fsck-failed",
  ],
  [
    /wrong fs type|bad superblock|unknown filesystem type|filesystem mismatch|already contains unexpected file ?system/i,
    "wrong-fs-type",
  ],
  [/node affinity|no matching NodeSelectorTerms|nodeaffinity/i, "mount-node-conflict"],
  [/setting volume ownership|taking longer than expected/i, "fs-group-slow"],
  [/permission denied|PermissionDenied|access denied|operation not permitted/i, "mount-denied"],
  [/DeadlineExceeded|deadline exceeded|timed out/i, "mount-timeout"],
];

/** Only says which volumes are still missing; another event of the pod has the cause. */
const SUMMARY = /^Unable to attach or mount volumes/;

/** The node's own word where it was asked: it is of this moment, and knows when it tries again. Else its events. */
export const mountFailed: Check = (view) => {
  const wait = failureOf(view);
  return wait === undefined ? eventFailed(view) : failed(view, wait);
};

function failed(view: VolumeView, wait: MooringWait): Finding {
  const event =
    wait.message === ""
      ? undefined
      : mountEvents(view).find((item) => textAt(item, "message").endsWith(wait.message));
  const call = view.driver === "" ? undefined : CALLS[stepOf(textAt(event, "message"))];
  return found(meaningOf(wait.message) ?? "mount-failed", view, {
    names: { message: oneLine(call === undefined ? wait.message : `${call} fails: ${wait.message}`) },
    evidence: [seenWait(wait), ...(event === undefined ? [] : [seenEvent(view, event)])],
    sinceMs: wait.sinceMs,
    next: triedAgain(view.cluster, wait),
  });
}

/** The newest failure of this very volume that says something. */
const eventFailed: Check = (view) => {
  const event = mountEvents(view).find((item) => concerns(view, textAt(item, "message")));
  if (event === undefined) return undefined;
  const message = textAt(event, "message");
  const isFsGroup = textAt(event, "reason") === FS_GROUP;
  const reason = isFsGroup ? "fs-group-slow" : (meaningOf(message) ?? "mount-failed");
  return found(reason, view, {
    names: { message: oneLine(message) },
    evidence: [seenEvent(view, event)],
    sinceMs: eventTime(event),
  });
};

/** The call of CSI behind a step, as kubelets name steps in events: it is what people find in the log of a driver. */
const CALLS: Readonly<Record<string, string>> = {
  "MountVolume.MountDevice": "NodeStageVolume",
  "MountVolume.SetUp": "NodePublishVolume",
  "MapVolume.SetUpDevice": "NodeStageVolume",
  "MapVolume.MapPodDevice": "NodePublishVolume",
};

function stepOf(message: string): string {
  return /^(\w+\.\w+) failed/.exec(message)?.[1] ?? "";
}

function seenEvent({ pod }: VolumeView, event: KubeEvent): Evidence {
  return seen(`Event of Pod ${idOf(pod)}`, textAt(event, "reason"), textAt(event, "message"));
}

function meaningOf(message: string): Reason | undefined {
  return MEANINGS.find(([pattern]) => pattern.test(message))?.[1];
}

function mountEvents({ cluster, pod }: VolumeView): readonly KubeEvent[] {
  const created = createdAt(pod) ?? 0;
  const uid = textAt(pod, "metadata", "uid");
  return cluster.eventsOf("Pod", idOf(pod)).filter((event) => {
    const reason = textAt(event, "reason");
    if ((!FAILURES.has(reason) && reason !== FS_GROUP) || SUMMARY.test(textAt(event, "message")))
      return false;
    // A pod of a StatefulSet has the name of the one before it, whose troubles are over.
    const of = textAt(event, "involvedObject", "uid");
    return (of === "" || uid === "" || of === uid) && (eventTime(event) ?? created) >= created;
  });
}

/** Kubelets put the name of the volume in quotes; a message without one is about whichever volume is asked about. */
function concerns({ volumeName, pvName }: VolumeView, message: string): boolean {
  const named = /for volume "([^"]+)"/.exec(message)?.[1];
  return named === undefined || named === volumeName || named === pvName || named.endsWith(`^${pvName}`);
}

export const agentSilent: Check = (view) => {
  const { node, uniqueName } = view;
  if (!isAttachedHere(view) || uniqueName === "" || !nodeLists(node, uniqueName)) return undefined;
  if (textsAt(node, "status", "volumesInUse").includes(uniqueName)) return undefined;
  const evidence = [
    seen(`Node ${view.nodeName}`, "status.volumesAttached", uniqueName),
    seen(`Node ${view.nodeName}`, "status.volumesInUse", `not ${uniqueName}`),
  ];
  return found("agent-silent", view, { evidence, sinceMs: createdAt(view.attachment) });
};

/** Nothing is wrong that objects could tell; the pod just has not started. */
export const mountPending: Check = (view) => {
  const { pod, nodeName } = view;
  if (pod === undefined || nodeName === "") return undefined;
  const waiting = waitingContainer(pod);
  const evidence = [seen(`Pod ${idOf(pod)}`, "status.phase", textAt(pod, "status", "phase"))];
  if (waiting === undefined) return found("mount-pending", view, { evidence, sinceMs: createdAt(pod) });
  return found("container-waiting", view, {
    names: { container: waiting.name, message: oneLine(waiting.message) },
    evidence: [seen(`Pod ${idOf(pod)}`, `status.containerStatuses[${waiting.name}]`, waiting.message)],
  });
};
