import type { KubeEvent } from "../../kube/api/event.ts";
import { eventTime } from "../cluster.ts";
import { waitingContainer } from "../conditions.ts";
import { isObject } from "../../volumes/untrusted.ts";
import { createdAt, field, idOf, objectsAt, oneLine, textAt, textsAt } from "../fields.ts";
import type { MooringWait } from "../objects.ts";
import type { Evidence, Finding, Reason } from "../reasons/reasons.ts";
import { isAttachedHere, nodeLists, type VolumeView } from "../volume-view.ts";
import { failureOf, seenWait, triedAgain } from "./agent-checks.ts";
import { found, seen, type Check } from "./check.ts";
import { containerReason } from "./in-use-checks.ts";

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
    /unknown filesystem type|unsupported file ?system|(protocol|protocol family|address family|NFS version[^.]*) (is )?not supported|EPROTONOSUPPORT|EAFNOSUPPORT|\bmount\b.*no such device|need a \/sbin\/mount|mount\.\w+: (command )?not found|executable file not found/i,
    "fs-unsupported",
  ],
  [
    /wrong fs type|bad superblock|filesystem mismatch|already contains unexpected file ?system/i,
    "wrong-fs-type",
  ],
  [/no volume plugin matched|no such driver|FlexVolume driver/i, "mount-plugin-missing"],
  [/node affinity|no matching NodeSelectorTerms|nodeaffinity/i, "mount-node-conflict"],
  [/setting volume ownership|taking longer than expected/i, "fs-group-slow"],
  [/permission denied|PermissionDenied|access denied|operation not permitted/i, "mount-denied"],
  [/DeadlineExceeded|deadline exceeded|timed out/i, "mount-timeout"],
];

/**
 * Says which volumes are still missing, and of those that could not even be begun with, why: that is told nowhere else.
 * `unmounted volumes=[a b], unattached volumes=[], failed to process volumes=[b]: no volume plugin matched`.
 */
const SUMMARY = /^Unable to attach or mount volumes/;
const UNPROCESSED = /failed to process volumes=\[([^\]]+)\]: (.+)$/s;

/** The node's own word where it was asked: it is of this moment, and knows when it tries again. Else its events. */
export const mountFailed: Check = (view) => {
  const wait = failureOf(view);
  return wait === undefined ? (eventFailed(view) ?? summaryFailed(view)) : failed(view, wait);
};

function failed(view: VolumeView, wait: MooringWait): Finding {
  const event =
    wait.message === ""
      ? undefined
      : mountEvents(view).find((item) => textAt(item, "message").endsWith(wait.message));
  const call = view.driver === "" ? undefined : CALLS[stepOf(textAt(event, "message"))];
  return mountFinding(view, wait.message, {
    names: { message: oneLine(naming(call, wait.message)) },
    evidence: [seenWait(wait), ...(event === undefined ? [] : [seenEvent(view, event)])],
    sinceMs: wait.sinceMs,
    next: triedAgain(view.cluster, wait),
  });
}

function naming(call: string | undefined, message: string): string {
  return call === undefined ? message : `${call} fails: ${message}`;
}

/** `MountVolume.MountDevice failed for volume "pv-1" : rpc error: ...`: what the driver said. */
function answerIn(message: string): string {
  return message.slice(message.indexOf("rpc error: "));
}

/** The newest failure of this very volume that says something. */
const eventFailed: Check = (view) => {
  const event = mountEvents(view).find((item) => concerns(view, textAt(item, "message")));
  if (event === undefined) return undefined;
  const message = textAt(event, "message");
  // Only what a driver answered is an `rpc error`: a kubelet has reasons of its own to fail at the same step.
  const call = message.includes("rpc error: ") ? CALLS[stepOf(message)] : undefined;
  const told = {
    names: { message: oneLine(naming(call, call === undefined ? message : answerIn(message))) },
    evidence: [seenEvent(view, event)],
    sinceMs: eventTime(event),
  };
  return textAt(event, "reason") === FS_GROUP
    ? found("fs-group-slow", view, told)
    : mountFinding(view, message, told);
};

/** What could not be begun with has no other event. */
function summaryFailed(view: VolumeView): Finding | undefined {
  for (const event of eventsOf(view).filter((event) => SUMMARY.test(textAt(event, "message")))) {
    const [, names = "", message = ""] = UNPROCESSED.exec(textAt(event, "message")) ?? [];
    if (message === "" || !names.split(/[\s,]+/).includes(view.volumeName)) continue;
    const told = { names: { message: oneLine(message) }, evidence: [seenEvent(view, event)] };
    return mountFinding(view, message, { ...told, sinceMs: eventTime(event) });
  }
  return undefined;
}

function mountFinding(view: VolumeView, message: string, known: Parameters<typeof found>[2]): Finding {
  const reason = meaningOf(message) ?? "mount-failed";
  if (reason === "mount-plugin-missing") return found(reason, view, { ...known, besides: flexDriver(view) });
  if (reason !== "secret-missing") return found(reason, view, known);
  return found(reason, view, { ...known, names: { ...known.names, ...secretIn(view, message) } });
}

/** The kubelet says that nobody serves the volume, and not whom it asked for. */
function flexDriver({ pod, pv, volumeName }: VolumeView): string | undefined {
  const own = objectsAt(pod, "spec", "volumes").find((item) => textAt(item, "name") === volumeName);
  const driver = textAt(own, "flexVolume", "driver") || textAt(pv, "spec", "flexVolume", "driver");
  return driver === "" ? undefined : `it asks for FlexVolume driver ${driver}`;
}

const SECRET_FIELDS = [
  "nodePublishSecretRef",
  "nodeStageSecretRef",
  "controllerPublishSecretRef",
  "nodeExpandSecretRef",
];

/** A PersistentVolume names the namespace of its Secrets, which is seldom that of the pod. */
function secretIn({ pv, pod }: VolumeView, message: string): Record<string, string> {
  const name = /secrets? "([^"/]*)"/i.exec(message)?.[1] ?? "";
  const refs = SECRET_FIELDS.map((key) => field(pv, "spec", "csi", key)).filter(isObject);
  const ref = refs.find((item) => textAt(item, "name") === name) ?? (name === "" ? refs[0] : undefined);
  const [secretName, secretNs] = [
    name || textAt(ref, "name"),
    textAt(ref, "namespace") || textAt(pod, "metadata", "namespace"),
  ];
  return {
    secretNs,
    secretName,
    secret: secretName === "" ? "a Secret" : `Secret ${secretNs}/${secretName}`,
  };
}

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

function mountEvents(view: VolumeView): readonly KubeEvent[] {
  return eventsOf(view).filter((event) => !SUMMARY.test(textAt(event, "message")));
}

function eventsOf({ cluster, pod }: VolumeView): readonly KubeEvent[] {
  return cluster.eventsOf("Pod", idOf(pod)).filter((event) => {
    const reason = textAt(event, "reason");
    return FAILURES.has(reason) || reason === FS_GROUP;
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

/** A volume without trouble is mounted within this. */
const MOUNTED_WITHIN_MS = 120_000;

/** Undefined while all goes as it should; past that, nobody may be told that it comes within seconds. */
function pendingNext(view: VolumeView): string | undefined {
  const [told] = eventsOf(view).map((event) => textAt(event, "message"));
  if (told !== undefined) return `its kubelet only says: ${oneLine(told)}`;
  const waitedMs = view.cluster.nowMs - (createdAt(view.pod) ?? view.cluster.nowMs);
  return waitedMs < MOUNTED_WITHIN_MS
    ? undefined
    : "it should have been mounted within seconds; why not, only the log of the kubelet or the driver can say";
}

/** Nothing is wrong that objects could tell; the pod just has not started. */
export const mountPending: Check = (view) => {
  const { pod, nodeName } = view;
  if (pod === undefined || nodeName === "") return undefined;
  const waiting = waitingContainer(pod);
  const evidence = [seen(`Pod ${idOf(pod)}`, "status.phase", textAt(pod, "status", "phase"))];
  if (waiting === undefined)
    return found("mount-pending", view, { evidence, sinceMs: createdAt(pod), next: pendingNext(view) });
  return found(containerReason(waiting.message), view, {
    names: { container: waiting.name, message: oneLine(waiting.message) },
    evidence: [seen(`Pod ${idOf(pod)}`, `status.containerStatuses[${waiting.name}]`, waiting.message)],
  });
};
