import { formatAge } from "../age.ts";
import type { Cluster } from "../cluster.ts";
import { idOf, isDeleting, oneLine, textAt, textsAt } from "../fields.ts";
import type { MooringWait } from "../objects.ts";
import type { Evidence, Finding } from "../reasons/reasons.ts";
import type { Help } from "../reasons/words.ts";
import { nodeLists, type VolumeView } from "../volume-view.ts";
import { found, seen, type Check } from "./check.ts";

/*
 * What a node of Mooring says itself, where its `/debug/volumes` was asked. Nothing of it is worked out again: it is of
 * this moment, where an event may be an hour old, and it knows when it is tried again.
 */

/** A pod that ends but cannot let go, or one before this one that cannot: nothing is mounted meanwhile. */
export const unmountFailed: Check = (view) => {
  const waits = leavingOf(view).filter(isFailedUnmount);
  const own = waits.find(({ pod }) => pod === idOf(view.pod));
  const wait = isDeleting(view.pod) ? own : waits.find((item) => item !== own);
  return wait && unmountFinding(view, wait);
};

/** Of a claim that leads nowhere any more the disk is not known; what its node says of the pod still is. */
function leavingOf({ cluster, nodeName, uniqueName, pod }: VolumeView): readonly MooringWait[] {
  if (uniqueName !== "") return waitsOn(cluster, nodeName, uniqueName);
  return cluster.waitsAbout(idOf(pod)).filter((wait) => wait.process === "node" && wait.node === nodeName);
}

/** Also of volumes that no pod wants any more, which are looked at by their attachment. */
export function unmountFinding(view: VolumeView, wait: MooringWait): Finding {
  return found("unmount-failed", view, {
    names: { from: leftBy(wait), message: whyBusy(wait.message) },
    evidence: [seenWait(wait)],
    sinceMs: wait.sinceMs,
    next: triedAgain(view.cluster, wait),
    help: busyHelp("{node}", wait),
  });
}

/** As the node agent ends a message that names who keeps a volume busy (src/node/evidence/users.ts). */
const HOLDERS = /(?:^|; )(process \d+ \(.*): it can be unmounted once that has ended/;

/** The processes come first: a long message is cut in its middle, and they are what a person can do something about. */
export function whyBusy(message: string): string {
  const holders = HOLDERS.exec(message)?.[1];
  return oneLine(holders === undefined ? message : `${holders}; ${message.replace(HOLDERS, "")}`);
}

/** Where nothing names the process, the kernel says that something uses it, and not what: a look on the node itself does. */
export function busyHelp(node: "{node}" | "{holder}", { message }: MooringWait): Help | undefined {
  const holders = HOLDERS.exec(message)?.[1];
  if (holders !== undefined)
    return { none: `on ${node} ${oneLine(holders)}: once that has ended, the unmount works` };
  if (!/\bbusy\b|EBUSY/i.test(message)) return undefined;
  return {
    none: `a process on ${node} has files of it open or works in it: \`fuser --verbose --mount\` with the path of the mount, run there, names it; once it ends, the unmount works`,
    look: `kubectl describe node ${node}`,
  };
}

/** Anything but a failure: what it waits for before it can begin, or a step that takes long. */
export const nodeWaits: Check = (view) => {
  const wait = waitOf(view);
  if (wait === undefined) return undefined;
  const list = unheardList(view, wait);
  if (list !== undefined)
    return found("agent-behind", view, {
      names: { waiting: wait.reason, list },
      evidence: [seenWait(wait), seen(`Node ${view.nodeName}`, `status.${list}`, view.uniqueName)],
      sinceMs: wait.sinceMs,
    });
  return found("node-waits", view, {
    names: { waiting: wait.reason, message: oneLine(wait.message) },
    evidence: [seenWait(wait)],
    sinceMs: wait.sinceMs,
    next: triedAgain(view.cluster, wait),
  });
};

/** The list of its Node that has had for a while what the agent waits for: what it says is old, and its watch is silent or late. */
function unheardList({ node, uniqueName, cluster }: VolumeView, wait: MooringWait): string | undefined {
  if (uniqueName === "" || cluster.nowMs - (wait.sinceMs ?? cluster.nowMs) < HEARD_WITHIN_MS)
    return undefined;
  if (wait.reason === "not-attached" && nodeLists(node, uniqueName)) return "volumesAttached";
  const isReported = textsAt(node, "status", "volumesInUse").includes(uniqueName);
  return wait.reason === "in-use-not-reported" && isReported ? "volumesInUse" : undefined;
}

/** An agent hears of a change of its Node within moments, and a controller of one of its VolumeAttachments. */
export const HEARD_WITHIN_MS = 10_000;

/** The last attempt to mount it failed, and this is how. */
export function failureOf(view: VolumeView): MooringWait | undefined {
  const wait = waitOf(view);
  return wait?.reason === "backoff" ? wait : undefined;
}

/** What its node says that the volume of this pod waits for; a word about the pod before one about the volume. */
export function waitOf(view: VolumeView): MooringWait | undefined {
  const { cluster, pod, nodeName, uniqueName } = view;
  if (pod === undefined || nodeName === "" || isDeleting(pod)) return undefined;
  const about = cluster
    .waitsAbout(idOf(pod), uniqueName)
    .filter((wait) => wait.process === "node" && wait.node === nodeName && !wait.leaving);
  const own = about.find((wait) => wait.pod === idOf(pod) && isNamed(wait.volume, view));
  return own ?? about.find((wait) => wait.pod === "" && wait.volume === uniqueName);
}

/** A failed attempt to take it from a node that should not have it any more. */
export function failedUnmount(cluster: Cluster, node: string, uniqueName: string): MooringWait | undefined {
  return waitsOn(cluster, node, uniqueName).find(isFailedUnmount);
}

function waitsOn(cluster: Cluster, node: string, uniqueName: string): readonly MooringWait[] {
  return cluster
    .waitsAbout(uniqueName)
    .filter((wait) => wait.process === "node" && wait.node === node && wait.volume === uniqueName);
}

function isFailedUnmount({ leaving, reason }: MooringWait): boolean {
  return leaving && reason === "backoff";
}

/** Nodes call a volume of one pod `<plugin>/<uid of the pod>-<name>`, and one they cannot follow as the pod does. */
export function isNamed(volume: string, { pod, volumeName, pvName, uniqueName }: VolumeView): boolean {
  if (volume === uniqueName || volume === volumeName) return true;
  const uid = textAt(pod, "metadata", "uid");
  return [volumeName, pvName].some(
    (name) => name !== "" && (volume.endsWith(`/${uid}-${name}`) || volume.endsWith(`/${name}`)),
  );
}

export function leftBy({ pod }: MooringWait): string {
  return pod === "" ? "a pod that is gone" : `pod ${pod}`;
}

export function seenWait({ process, node, reason, message }: MooringWait): Evidence {
  return seen(
    `mooring ${process}${process === "node" ? ` ${node}` : ""}`,
    "waitingFor",
    `${reason}: ${message}`,
  );
}

/** Undefined where nobody knows when; a moment that has passed is being acted upon. */
export function triedAgain({ nowMs }: Cluster, { untilMs }: MooringWait): string | undefined {
  if (untilMs === undefined) return undefined;
  return untilMs <= nowMs ? "it is tried again now" : `it is tried again in ${formatAge(untilMs - nowMs)}`;
}
