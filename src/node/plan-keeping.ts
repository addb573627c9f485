import { lateAgainst } from "./late-calls.ts";
import type { Draft, Surroundings } from "./plan-draft.ts";
import {
  doingOf,
  waitForAdopter,
  waitForBackoff,
  waitForBegun,
  waitForEnd,
  waitForLate,
  waitForPod,
  waitForProcess,
  waitForStep,
  waitForSync,
} from "./plan-waits.ts";
import { isHere, type Held, type OperationName, type PodMount, type VolumeState } from "./world.ts";

/**
 * What keeps a volume that no pod uses any more: pods that are not known yet, a pod that lives and cannot be followed, a
 * process by the kernel's word, a step that runs, a call that got no answer, a back-off. Where nothing does, it is taken
 * from the pod, then the step once a node is undone, then it is forgotten.
 */
/** The pod that something of the volume is on its way out of, or should be; undefined where there is none. */
export function planUnmounts(volume: VolumeState, around: Surroundings, draft: Draft): string | undefined {
  let leaving: string | undefined;
  for (const mount of volume.held?.mounts.values() ?? []) {
    if (volume.wants.has(mount.podUid)) continue;
    leaving ??= mount.podUid;
    planUnmount(volume, mount, { around, draft });
  }
  for (const { podUid, operation, abort } of volume.running) {
    const mounting = operation === "volume_mount" || operation === "map_volume" || isDeviceMount(operation);
    // What is ours to end is not carried on with for a pod that is gone; a driver's call is, until it has an answer.
    const idle = podUid !== undefined ? !volume.wants.has(podUid) : volume.wants.size === 0;
    if (mounting && idle && !abort.signal.aborted) draft.act({ kind: "abandon", podUid: podUid ?? "" });
  }
  return leaving;
}

function planUnmount(
  volume: VolumeState,
  mount: PodMount,
  { around, draft }: { readonly around: Surroundings; readonly draft: Draft },
): void {
  const { podUid } = mount;
  if (!around.readyToUnmount) {
    draft.wait(podUid, waitForSync(volume, around));
    return;
  }
  const adopter = volume.held?.unknown ? around.adopter(mount) : undefined;
  // A block volume lies where its name says, so that what was found there has to be gone before the pod can have its own.
  const isInTheWay = adopter === "wants" && volume.held?.mode === "Block";
  if (isInTheWay) {
    planTakeDown(volume, mount, { around, draft });
    return;
  }
  if (adopter !== undefined) {
    if (adopter === "holds") draft.act({ kind: "disown", mount });
    else draft.wait(podUid, waitForAdopter(volume, mount));
    return;
  }
  const unresolved = around.unresolved(podUid);
  if (unresolved !== undefined) {
    draft.wait(podUid, waitForPod(volume, podUid, unresolved));
    return;
  }
  if (around.isLive(podUid)) {
    draft.wait(podUid, waitForEnd(volume, podUid));
    return;
  }
  planTakeDown(volume, mount, { around, draft });
}

function planTakeDown(
  volume: VolumeState,
  mount: PodMount,
  { around, draft }: { readonly around: Surroundings; readonly draft: Draft },
): void {
  const { podUid } = mount;
  const running = volume.running.find((other) => other.exclusive || other.podUid === podUid);
  if (running) {
    draft.wait(podUid, waitForStep(volume, doingOf(volume, running, around)));
    return;
  }
  const late = lateAgainst(volume, unmountName(volume), podUid);
  if (late) {
    draft.wait(podUid, waitForLate(volume, late, around));
    return;
  }
  const backoff = around.backoff(unmountName(volume), podUid);
  if (backoff) {
    draft.wait(podUid, waitForBackoff(volume, backoff));
    return;
  }
  if (!isLetGo(volume, podUid, { around, draft })) return;
  draft.act({ kind: "unmount", mount });
  draft.wait(podUid, waitForBegun(volume, { operation: unmountName(volume), podUid }, around));
}

/** Whether the kernel said that no process has it; where it did not, it is asked, and the volume waits. */
function isLetGo(
  volume: VolumeState,
  podUid: string,
  { around, draft }: { readonly around: Surroundings; readonly draft: Draft },
): boolean {
  const finding = around.evidence(podUid);
  if (finding?.kind === "free") return true;
  const isDue = finding === undefined || (finding.kind === "held" && finding.untilMs <= around.nowMs);
  if (isDue) draft.act({ kind: "look-for-holders", podUid });
  draft.wait(podUid, waitForProcess(volume, finding, { isDue }));
  return false;
}

/**
 * A driver may refuse to detach what is staged, and nothing is staged here while its VolumeAttachment is being deleted, nor before
 * the node lists the volume: each would wait for the other for ever, where an agent found the volume after a restart of its own or
 * of the machine. So what no pod can use yet is taken down, and mounted again once the volume was attached anew. What a process
 * has stays.
 */
export function planGivingWay(volume: VolumeState, around: Surroundings, draft: Draft): void {
  const { held, wants, detaching } = volume;
  if (!held || !around.readyToUnmount) return;
  const mounts = [...held.mounts.values()];
  if (mounts.some(({ state }) => state === "mounted")) return;
  if (!isHere(held)) return;
  for (const podUid of wants.keys()) {
    const reason = draft.waits.get(podUid)?.reason;
    // Its mount was refused a moment ago: before anything is taken down, it is tried once more.
    if (reason !== "not-attached" && !(detaching && reason === "backoff")) return;
  }
  for (const mount of mounts) planTakeDown(volume, mount, { around, draft });
  planRelease(volume, around, draft);
}

/** Nobody wants it: the step once a node is undone, then it is forgotten. */
export function planRelease(volume: VolumeState, around: Surroundings, draft: Draft): void {
  const { held } = volume;
  if (!held || held.mounts.size > 0) return;
  if (!around.readyToUnmount || around.loading) {
    draft.wait("", waitForSync(volume, around));
    return;
  }
  const running = volume.running[0];
  if (running) {
    draft.wait("", waitForStep(volume, doingOf(volume, running, around)));
    return;
  }
  // What a driver may be at still is waited for, and in use until then: also where nothing of the volume is here now.
  const undo = unstageName(volume);
  const late = held.device === "not-mounted" ? volume.late[0] : lateAgainst(volume, undo, undefined);
  if (late) {
    draft.wait("", waitForLate(volume, late, around));
    return;
  }
  if (held.device === "not-mounted") {
    planForget(volume, around, { draft, held });
    return;
  }
  const backoff = around.backoff(undo);
  if (backoff) {
    draft.wait("", waitForBackoff(volume, backoff));
    return;
  }
  if (!isLetGo(volume, "", { around, draft })) return;
  draft.act({ kind: "unmount-device" });
  draft.wait("", waitForBegun(volume, { operation: undo, podUid: undefined }, around));
}

/** Where the node attached for itself it detaches for itself; a controller does that unasked. */
function planForget(
  volume: VolumeState,
  around: Surroundings,
  { draft, held }: { readonly draft: Draft; readonly held: Held },
): void {
  if (around.controllerAttaches || held.attachable === "no" || !volume.plugin.attach?.detach) {
    draft.act({ kind: "forget" });
    return;
  }
  const backoff = around.backoff("volume_detach");
  if (backoff) draft.wait("", waitForBackoff(volume, backoff));
  else {
    draft.act({ kind: "detach" });
    draft.wait("", waitForBegun(volume, { operation: "volume_detach", podUid: undefined }, around));
  }
}

function isDeviceMount(operation: OperationName): boolean {
  return operation === "mount_device" || operation === "map_device";
}

export function unmountName({ held }: VolumeState): OperationName {
  return held?.mode === "Block" ? "unmap_volume" : "volume_unmount";
}

export function unstageName({ held }: VolumeState): OperationName {
  return held?.mode === "Block" ? "unmap_device" : "unmount_device";
}
