import type { Node } from "../kube/api/node.ts";
import type { Pod } from "../kube/api/pod.ts";
import { specName, type VolumeSpec } from "../volumes/spec.ts";
import type { TracedHolder } from "./foreign.ts";
import { describeHolder, holdersElsewhere, isSurelyHeld, rivalOf } from "./holders.ts";
import { isInherited, silentUntilMs } from "./new-node.ts";
import { isHealthy, isMounted, isOutOfService, lateUntilMs, listsVolume, mayBeListed } from "./node-view.ts";
import type { ForceRule } from "./options.ts";
import type { WaitingFor, WaitingObject, WaitingReason } from "./waiting.ts";
import { unmountWords, useWords } from "./words.ts";
import { claimOf, type Hold, type Placement, type Unresolved, type Want } from "./world.ts";

/**
 * One placement, and everything that follows from what is known about it now: what to do, what it waits for, when to
 * look again. Pure: it reads, the controller acts.
 *
 * The promises of this file:
 * - a volume that only one node may have is attached to none while another holds it, surely or perhaps;
 * - a volume leaves `volumesAttached`, and the server has said so, before its detach begins;
 * - what somebody else attached counts as attached, and is never detached from under them;
 * - a volume in use is left where it is, unless its node is not healthy and the rule's time is over, or an
 *   operator tainted the node as out of service;
 * - what cannot be understood is not detached.
 */
export interface Plan {
  readonly actions: readonly Action[];
  readonly waitingFor: Wait | undefined;
  /** In the clock's `now()`: look again then, even if nothing happens. */
  readonly revisitAtMs: number | undefined;
}

/** Since when is known to whoever saw the wait before; `controller.ts` adds it. */
export type Wait = Omit<WaitingFor, "sinceMs">;

export type Action =
  | { readonly kind: "attach" }
  | { readonly kind: "detach"; readonly force: Force | undefined }
  /** The attach under way is for nobody: stop waiting for it. */
  | { readonly kind: "abandon" }
  /** Whether the node should be told that it may mount the volume. */
  | { readonly kind: "list"; readonly listed: boolean }
  /** Found attached at the start, but its node does not list it: an attach has to find out whether it is. */
  | { readonly kind: "doubt" }
  /** The VolumeAttachment says that it is no longer attached. */
  | { readonly kind: "lost" }
  /** Pods that wait for another node to let go should know. */
  | {
      readonly kind: "tell-waiting";
      readonly holders: readonly Placement[];
      readonly traced: readonly TracedHolder[];
    };

/** The evidence for taking a volume from a node that uses it; the node's part is read again from the API server before it is done. */
export interface Force {
  /** For how long no pod has wanted it, where that is longer than its rule allows. */
  readonly expiredMs: number | undefined;
}

/** What the plan needs to know besides the placement. */
export interface Surroundings {
  readonly nowMs: number;
  /** An operation under way that this one must not overlap with, here or on another node. */
  readonly running: Placement | undefined;
  /** Nodes that may have a volume of one node by a VolumeAttachment that is not found under it. */
  readonly traced: readonly TracedHolder[];
  /** The last attempt failed and it is too early for the next. */
  readonly backoff: (operation: "volume_attach" | "volume_detach") => Backoff | undefined;
  /** What the cached VolumeAttachment says; `unknown` where there is none to ask, or nobody wants to know. */
  readonly attachment: "attached" | "not-attached" | "mismatch" | "unknown";
  /** It is ours, and will never be attached: its PersistentVolume is gone, and its attacher has said that it cannot. */
  readonly orphaned: boolean;
  readonly pluginKnown: boolean;
  /** A pod here that may run on it although nothing leads from it to the volume any more. */
  readonly claimant: () => Pod | undefined;
  readonly forceRule: ForceRule;
  /** How long the server has been silent about pods, nodes or VolumeAttachments: the longest of the three. */
  readonly stalenessMs: number;
  /** For how long the present watch of pods has been open; 0 while none is. */
  readonly podsWatchedMs: number;
}

export interface Backoff {
  readonly untilMs: number;
  readonly lastError: string;
}

/**
 * Bookmarks come every minute or so; past this the cache may miss a pod that uses the volume, or somebody else's
 * VolumeAttachment of it, and nothing is taken from anybody until the server is heard of again.
 */
const STALE_MS = 180_000;
const STALE_REVISIT_MS = 10_000;

/** A server sends what a resumed watch has missed at once: after this it has been told, or never will be. */
const CATCH_UP_MS = 2_000;

export function planPlacement(placement: Placement, around: Surroundings): Plan {
  const { want, hold, node } = placement;
  const rival = want && hold && node.managed ? rivalOf(placement) : undefined;
  if (rival && hold) return planYield(placement, hold, rival, around);
  if (want && hold?.confirmed) return planHeld(placement, hold, around);
  if (hold && around.orphaned && node.managed) return planRenew(placement, hold, around);
  if (want) return planAttach(placement, want, around);
  if (placement.busy?.operation === "volume_attach") return planCallOff(placement);
  // Nodes that attach for themselves are left alone, whatever is on them.
  if (hold && (node.managed || !node.exists)) return planDetach(placement, hold, around);
  if (placement.busy) return planBusy(placement);
  return placement.foreign.length > 0 ? waitForForeign(placement) : NOTHING;
}

const NOTHING: Plan = { actions: [], waitingFor: undefined, revisitAtMs: undefined };

/** Attached where it is wanted: the node should know. */
function planHeld(placement: Placement, hold: Hold, around: Surroundings): Plan {
  const { node } = placement;
  if (placement.busy) return planBusy(placement);
  if (!node.managed) return NOTHING;
  // The pods run on; but what its name now stands for is another disk, and nothing is done on its word.
  if (around.attachment === "mismatch") return waitForMismatch(placement);
  if (around.attachment === "not-attached") return act({ kind: "lost" });
  const onServer = listsVolume(node.node, placement.volume.name);
  if (node.exists && !onServer && !hold.proven) return act({ kind: "doubt" });
  const actions: readonly Action[] = hold.listed ? [] : [{ kind: "list", listed: true }];
  if (!node.exists || onServer) return { ...NOTHING, actions };
  return { ...waitForNodeStatus(placement, "to list it as attached"), actions };
}

function planAttach(placement: Placement, want: Want, around: Surroundings): Plan {
  const { node, busy } = placement;
  if (busy) return planBusy(placement);
  if (!node.exists)
    return wait("node-missing", nodeObject(placement), `node ${node.name} is not there; its pods cannot run`);
  if (!node.managed)
    return wait(
      "node-not-managed",
      nodeObject(placement),
      `node ${node.name} attaches for itself: it lacks the annotation volumes.kubernetes.io/controller-managed-attach-detach`,
    );
  const holders = holdersElsewhere(placement);
  const { traced } = around;
  if (holders.length > 0 || traced.length > 0) return waitForHolders(placement, want, { holders, traced });
  if (around.running) return waitForOther(around.running);
  // Its detach would come after our attach, and take the disk from the pod.
  if (placement.foreign.some(({ deleting }) => deleting)) return waitForForeign(placement);
  if (around.attachment === "mismatch") return waitForMismatch(placement);
  const backoff = around.backoff("volume_attach");
  if (backoff) return waitForBackoff(placement, backoff);
  return act({ kind: "attach" });
}

function planDetach(placement: Placement, hold: Hold, around: Surroundings): Plan {
  if (placement.busy) return planBusy(placement);
  const frozen = freeze(placement, hold, around);
  if (frozen) return frozen;
  if (around.running) return waitForOther(around.running);
  const mounted = isMounted(placement);
  const claimant = mounted ? around.claimant() : undefined;
  if (claimant) return waitForClaimant(claimant, hold);
  const force = mounted ? forceOf(placement, hold, around) : undefined;
  if (mounted && !force) return waitForUnmount(placement, hold, around);
  const backoff = around.backoff("volume_detach");
  if (backoff) return waitForBackoff(placement, backoff);
  return planRelease(placement, hold, { force, nowMs: around.nowMs });
}

/**
 * Two nodes hold, or may hold, a volume that only one may have: a request of an earlier leader came late, or somebody made
 * a VolumeAttachment. One of them lets go although pods want it there, unless it is in use; when the other is
 * done with it, it is attached again.
 */
function planYield(placement: Placement, hold: Hold, rival: Placement, around: Surroundings): Plan {
  if (placement.busy?.operation === "volume_attach") return planCallOff(placement);
  if (placement.busy) return planBusy(placement);
  const frozen = freeze(placement, hold, around);
  if (frozen) return frozen;
  if (around.running) return waitForOther(around.running);
  if (isMounted(placement))
    return wait(
      "held-by-other-node",
      { kind: "Node", name: rival.node.name },
      `${placement.volume.name} may be attached to one node only, but ${describeHolder(rival)} has it as well, and ${useWords(placement)}; ${rival.foreign.length > 0 ? "end what uses it there and delete that VolumeAttachment" : "delete one of the pods"}`,
    );
  const backoff = around.backoff("volume_detach");
  if (backoff) return waitForBackoff(placement, backoff);
  return planRelease(placement, hold, { force: undefined, nowMs: around.nowMs });
}

/**
 * An orphaned VolumeAttachment (`isOrphaned`) is detached in the ordinary order and then created anew with the PersistentVolume
 * of the pod. The attacher unpublishes whatever it may have published, because it adds its finalizer before it publishes. A
 * kubelet lists a volume in `volumesInUse` as soon as a pod wants it, so that being in use says little here: the detach goes on
 * where no attacher has begun with the VolumeAttachment, and nothing else (`lookLive`).
 */
function planRenew(placement: Placement, hold: Hold, around: Surroundings): Plan {
  if (placement.busy) return planBusy(placement);
  // Whose claim it was made for went with its PersistentVolume.
  const frozen = freeze(placement, { ...hold, spec: undefined }, around);
  if (frozen) return frozen;
  if (around.running) return waitForOther(around.running);
  const backoff = around.backoff("volume_detach");
  if (backoff) return waitForBackoff(placement, backoff);
  return planRelease(placement, hold, { force: undefined, nowMs: around.nowMs });
}

/** Off the node's list first, and confirmed by the server; then off the node. */
function planRelease(
  placement: Placement,
  hold: Hold,
  { force, nowMs }: { readonly force: Force | undefined; readonly nowMs: number },
): Plan {
  if (!placement.node.exists) return act({ kind: "detach", force });
  if (hold.listed || mayBeListed(placement))
    return {
      ...waitForNodeStatus(placement, "to stop listing it"),
      actions: hold.listed ? [{ kind: "list", listed: false }] : [],
    };
  const lateMs = lateUntilMs(placement, nowMs);
  return lateMs === undefined ? act({ kind: "detach", force }) : waitForLateList(placement, lateMs, nowMs);
}

/**
 * What is attached for nobody may take the driver two minutes, so it is called off; but not while the request that creates
 * its VolumeAttachment is on its way: nobody could tell then whether it will still arrive, after the volume was given to
 * another node.
 */
function planCallOff(placement: Placement): Plan {
  const plan = planBusy(placement);
  return placement.busy?.withDriver ? { ...plan, actions: [{ kind: "abandon" }] } : plan;
}

/** An operation is under way; its end brings the placement back. */
function planBusy({ busy, volume, node }: Placement): Plan {
  const attaching = busy?.operation === "volume_attach";
  const reason = !busy?.withDriver ? "api-request" : attaching ? "driver-attaching" : "driver-detaching";
  const verb = attaching ? "attach" : "detach";
  const message = busy?.withDriver
    ? `the driver was asked to ${verb} ${volume.name}; its attacher has not answered yet`
    : `asking the API server to ${verb} ${volume.name}`;
  return wait(reason, { kind: "Volume", name: volume.name }, `${message} (node ${node.name})`);
}

/** What must not be detached because it is not understood. */
function freeze(placement: Placement, hold: Hold, around: Surroundings): Plan | undefined {
  const { volume, node } = placement;
  if (!around.pluginKnown)
    return wait(
      "unknown-plugin",
      { kind: "Volume", name: volume.name },
      `no plugin here serves ${volume.name}; take it off node ${node.name} with whatever attached it`,
    );
  if (around.attachment === "mismatch") return waitForMismatch(placement);
  // A detach asks the driver to take the disk off the node, whoever else has attached it there.
  if (placement.foreign.length > 0) return waitForForeign(placement);
  for (const { pod, volume: name, resolution } of node.unresolved) {
    if (!mayBeUsedBy(hold.spec, resolution)) continue;
    const { namespace = "", name: podName = "" } = pod.metadata;
    return wait(
      "unresolved-pod",
      { kind: "Pod", name: podName, namespace },
      `pod ${namespace}/${podName} on this node may be using it: its volume ${name} cannot be followed (${resolution.message})`,
    );
  }
  if (around.stalenessMs <= STALE_MS) return undefined;
  return {
    ...wait(
      "stale-cache",
      nodeObject(placement),
      `the API server has said nothing about pods, nodes or VolumeAttachments for ${Math.round(around.stalenessMs / 1_000)} s`,
    ),
    revisitAtMs: around.nowMs + STALE_REVISIT_MS,
  };
}

/**
 * A pod whose claim is missing or no longer bound, or whose volume is not in the cache, may be running on this very volume.
 * A claim that belongs to another pod cannot have been mounted, and what cannot be translated was never ours.
 */
export function mayBeUsedBy(
  spec: VolumeSpec | undefined,
  { why, claim, persistentVolume }: Unresolved["resolution"],
): boolean {
  if (why === "claim-not-owned" || why === "untranslatable") return false;
  if (spec?.kind === "inline") return false;
  if (spec && persistentVolume !== undefined) return specName(spec) === persistentVolume;
  const owner = claimOf(spec);
  return owner === undefined || claim === undefined || owner === claim;
}

/** Its claim, volume or driver was replaced under it: what it runs on stays until the pod is gone, whatever the node's state. */
function waitForClaimant({ metadata: { namespace = "", name = "" } }: Pod, { spec }: Hold): Plan {
  return wait(
    "unresolved-pod",
    { kind: "Pod", name, namespace },
    `pod ${namespace}/${name} on this node may be running on it: it was attached for claim ${claimOf(spec) ?? ""} of the pod, which leads elsewhere now; it is detached once the pod is gone`,
  );
}

function forceOf({ node }: Placement, hold: Hold, around: Surroundings): Force | undefined {
  if (around.forceRule.kind === "never") return undefined;
  const unwantedMs = around.nowMs - (hold.unwantedSinceMs ?? around.nowMs);
  const expired = isExpired(hold, around) && hasCaughtUp(around);
  const force: Force = { expiredMs: expired ? unwantedMs : undefined };
  return mayForce(force, node.exists ? node.node : undefined) ? force : undefined;
}

function isExpired({ unwantedSinceMs }: Hold, { forceRule, nowMs }: Surroundings): boolean {
  return forceRule.kind === "after" && nowMs - (unwantedSinceMs ?? nowMs) > forceRule.ms;
}

/** While no watch of pods is open nobody knows whether one uses the volume again. */
export function hasCaughtUp({ podsWatchedMs }: Pick<Surroundings, "podsWatchedMs">): boolean {
  return podsWatchedMs >= CATCH_UP_MS;
}

/** Whether the node, as it is known or as it was just read, may be forced to let go. */
export function mayForce({ expiredMs }: Force, node: Node | undefined): boolean {
  return isOutOfService(node) || (expiredMs !== undefined && !isHealthy(node));
}

/**
 * Upstream's label of a forced detach: the expired time goes before the taint, and whether the node is healthy is not asked
 * then; dashboards that compare both controllers see the same numbers.
 */
export function forceReason({ expiredMs }: Force): "timeout" | "out-of-service" {
  return expiredMs === undefined ? "out-of-service" : "timeout";
}

function waitForUnmount(placement: Placement, hold: Hold, around: Surroundings): Plan {
  const { forceRule, nowMs } = around;
  const { node } = placement;
  const known = node.exists ? node.node : undefined;
  if (!isHealthy(known) && isExpired(hold, around)) return waitForPods(placement, nowMs);
  // One past the limit: the rule is "longer than".
  const forcedAtMs =
    forceRule.kind === "after" && !isHealthy(known)
      ? (hold.unwantedSinceMs ?? nowMs) + forceRule.ms + 1
      : undefined;
  // Its timer is the node's (`silent-nodes.ts`), and wakes all that wait for it.
  const spokenAtMs = isHealthy(known) && isInherited(placement) ? silentUntilMs(node) : undefined;
  const inS = (atMs: number) => Math.max(0, Math.ceil((atMs - nowMs) / 1_000));
  const forcedInS = inS(forcedAtMs ?? nowMs);
  const spokenInS = spokenAtMs === undefined ? undefined : inS(spokenAtMs);
  const forbidden = forceRule.kind === "never" && (isOutOfService(known) || !isHealthy(known));
  const message = `${useWords(placement)}; ${unmountWords(placement, { forceRule, forcedInS, spokenInS })}`;
  const untilMs = forcedAtMs ?? spokenAtMs;
  const until = untilMs === undefined ? {} : { untilMs };
  return {
    ...wait(forbidden ? "policy-never" : "still-mounted", nodeObject(placement), message, until),
    revisitAtMs: forcedAtMs,
  };
}

/** Its time is over, as far as a watch tells that is not open, or was opened a moment ago. */
function waitForPods(placement: Placement, nowMs: number): Plan {
  const untilMs = nowMs + CATCH_UP_MS;
  const message = `${useWords(placement)}; it is forced once a watch of pods shows that none uses it again`;
  return { ...wait("still-mounted", nodeObject(placement), message, { untilMs }), revisitAtMs: untilMs };
}

function waitForHolders(
  placement: Placement,
  want: Want,
  { holders, traced }: { readonly holders: readonly Placement[]; readonly traced: readonly TracedHolder[] },
): Plan {
  const [first] = holders;
  const found = new Set<string>(holders.map(({ node }) => node.name));
  const others = traced
    .filter(({ node }) => !found.has(node))
    .map(({ node, attachment }) => `${node} (by VolumeAttachment ${attachment}, which may be its)`);
  const nodes = [...holders.map(describeHolder), ...others].join(", ");
  const why = first?.waiting ? `; there: ${first.waiting.message}` : "";
  const untold = want.pods.some((pod) => !want.told.has(pod.metadata.uid ?? ""));
  return {
    ...wait(
      "held-by-other-node",
      { kind: "Node", name: first?.node.name ?? traced[0]?.node ?? "" },
      `${placement.volume.name} is ${holders.some(isSurelyHeld) ? "" : "perhaps "}attached to ${nodes} and may be attached to one node only${why}`,
    ),
    actions: untold ? [{ kind: "tell-waiting", holders, traced }] : [],
  };
}

function waitForOther({ node, volume }: Placement): Plan {
  return wait(
    "held-by-other-node",
    { kind: "Node", name: node.name },
    `an operation on ${volume.name} is under way for node ${node.name}`,
  );
}

function waitForMismatch({ volume, node, attachmentName = "" }: Placement): Plan {
  return wait(
    "attachment-mismatch",
    { kind: "VolumeAttachment", name: attachmentName },
    `VolumeAttachment ${attachmentName} has the name of ${volume.name} on ${node.name}, but it is for another driver, node or PersistentVolume; delete it by hand if it is wrong`,
  );
}

function waitForForeign({ volume, node, foreign, hold }: Placement): Plan {
  const [first] = foreign;
  const names = foreign.map(({ name }) => name).join(", ");
  const leaving = foreign.some(({ deleting }) => deleting);
  const then = leaving
    ? "it is being deleted, and nothing is done here before it is gone"
    : `whoever made it has to delete it${hold ? "; a detach of ours would take the disk from them" : ""}`;
  return wait(
    "foreign-attachment",
    { kind: "VolumeAttachment", name: first?.name ?? "" },
    `${volume.name} is ${foreign.some(({ attached }) => attached) ? "" : "to be "}attached to ${node.name} by VolumeAttachment ${names}, which this controller did not make: ${then}`,
  );
}

function waitForBackoff({ volume }: Placement, { untilMs, lastError }: Backoff): Plan {
  return {
    ...wait("backoff", { kind: "Volume", name: volume.name }, lastError, { untilMs }),
    revisitAtMs: untilMs,
  };
}

function waitForNodeStatus(placement: Placement, todo: string): Plan {
  const { writeError } = placement.node;
  const failed = writeError === undefined ? "" : `; the last write failed: ${writeError}`;
  return wait(
    "node-status",
    nodeObject(placement),
    `waiting for node ${placement.node.name}'s status.volumesAttached ${todo}${failed}`,
  );
}

/** A node that were told so after the detach would mount what it does not have. */
function waitForLateList(placement: Placement, untilMs: number, nowMs: number): Plan {
  const inS = Math.ceil((untilMs - nowMs) / 1_000);
  return {
    ...wait(
      "node-status",
      nodeObject(placement),
      `an earlier write of node ${placement.node.name}'s status.volumesAttached that names it was never answered and may still arrive; no longer in ${inS} s`,
      { untilMs },
    ),
    revisitAtMs: untilMs,
  };
}

function act(action: Action): Plan {
  return { ...NOTHING, actions: [action] };
}

function wait(
  reason: WaitingReason,
  object: WaitingObject,
  message: string,
  { untilMs }: { readonly untilMs?: number } = {},
): Plan {
  return {
    ...NOTHING,
    waitingFor: { reason, object, message, ...(untilMs === undefined ? {} : { untilMs }) },
  };
}

function nodeObject({ node }: Placement): WaitingObject {
  return { kind: "Node", name: node.name };
}
