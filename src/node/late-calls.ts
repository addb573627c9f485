import { csiSourceOf } from "../volumes/spec.ts";
import type { Context } from "./context.ts";
import { mark } from "./context.ts";
import type { VolumeError } from "./errors.ts";
import type { LateCall, OperationName, Running, VolumeState } from "./world.ts";

/**
 * Calls to a driver that ended on our side only: their deadline passed, or this process stopped. CSI lets a driver go on
 * all the same, and some do: a NodeStage that nobody waits for mounts minutes later, a NodeUnstage unmounts what was
 * staged again meanwhile. So such a call counts as under way until twice its deadline has passed, or until the connection
 * it was sent on is lost, with which the driver's process is gone. Until then its opposite is not sent, and the volume is neither
 * forgotten nor taken off `volumesInUse`. The same call may be repeated: drivers have to bear that.
 *
 * Not proven: a driver that is at it for longer still. What it mounts then is found as unrecognised after a restart.
 */

/** What a call is given before it counts as unanswered; what upstream gives one operation. */
export const CALL_MS = 120_000;
/** Since it began: a driver that hears of the cancellation has ended by then, one that does not has had twice its time. */
export const CALL_WINDOW_MS = 2 * CALL_MS;

/**
 * How often the record of a step that takes long is renewed. A step may be at other things for minutes before it calls a
 * driver (a group for a million files, a slow disk), so that when it began says nothing of its calls.
 */
export const RENEW_MS = 60_000;

/** The late call that this operation would get into the way of; undefined where there is none. */
export function lateAgainst(
  { late }: Pick<VolumeState, "late">,
  operation: OperationName,
  podUid: string | undefined,
): LateCall | undefined {
  return late.find((call) => conflicts(call, operation, podUid));
}

function conflicts(call: LateCall, operation: OperationName, podUid: string | undefined): boolean {
  switch (operation) {
    case "mount_device":
    case "map_device":
      return isUnstage(call);
    case "volume_mount":
    case "map_volume":
      return isUnstage(call) || (isUnpublish(call) && call.podUid === podUid);
    case "volume_unmount":
    case "unmap_volume":
      // Of other pods only what concerns the whole volume: those have targets of their own.
      return isMount(call) && (call.podUid === undefined || call.podUid === podUid);
    case "unmount_device":
    case "unmap_device":
      return isMount(call) || isUnpublish(call);
    case "volume_fs_resize":
      return isUnstage(call) || isUnpublish(call);
    case "volume_attach":
    case "volume_detach":
      return true;
  }
}

function isUnstage({ operation }: LateCall): boolean {
  return operation === "unmount_device" || operation === "unmap_device";
}

function isUnpublish({ operation }: LateCall): boolean {
  return operation === "volume_unmount" || operation === "unmap_volume";
}

function isMount(call: LateCall): boolean {
  return !isUnstage(call) && !isUnpublish(call);
}

/** A step failed because a call of it got no answer. */
export function noteLate(
  context: Context,
  volume: VolumeState,
  { operation, podUid }: Running,
  { late }: VolumeError,
): void {
  if (late === undefined) return;
  const call: LateCall = { operation, podUid, untilMs: late.sinceMs + context.callWindowMs };
  addLate(context, volume, call);
  void late.over.then(() => endLate(context, volume, call));
}

/** Bound: each took two minutes to become late and counts for two more, so there are at most two a kind of call and pod. */
export function addLate(context: Context, volume: VolumeState, call: LateCall): void {
  if (call.untilMs <= context.clock.now()) return;
  volume.late = [...volume.late, call];
  context.clock.after(call.untilMs - context.clock.now(), () => endLate(context, volume, call));
}

function endLate(context: Context, volume: VolumeState, call: LateCall): void {
  if (!volume.late.includes(call)) return;
  volume.late = volume.late.filter((other) => other !== call);
  if (context.stopping.aborted) return;
  void context.journal.settle(volume);
  mark(context, volume);
  if (context.world.tidy(volume)) context.operations.forget(volume.name);
}

/** Whether steps of the volume are calls to a driver, which may outlive this process. */
export function hasDriver({ held }: Pick<VolumeState, "held">): boolean {
  return held !== undefined && csiSourceOf(held.spec) !== undefined;
}
