import { unreachable } from "../base/assert.ts";
import { specName } from "../volumes/spec.ts";
import { lateAgainst } from "./late-calls.ts";
import { Draft, type Action, type Plan, type Surroundings, type Wait } from "./plan-draft.ts";
import { planGivingWay, planRelease, planUnmounts, unmountName, unstageName } from "./plan-keeping.ts";
import {
  doingOf,
  toldTo,
  wait,
  waitForBackoff,
  waitForBegun,
  waitForHolder,
  waitForLabel,
  waitForLate,
  waitForNamesake,
  waitForOldName,
  waitForReplaced,
  waitForStep,
} from "./plan-waits.ts";
import type { VolumeTraits } from "./plugin.ts";
import { mountedLabel } from "./steps/selinux.ts";
import type { WaitingObject } from "./waiting.ts";
import {
  isHere,
  type Held,
  type OperationName,
  type PodMount,
  type Running,
  type VolumeState,
  type Want,
} from "./world.ts";

/**
 * One volume of this node, and everything that follows from what is known about it now. Pure: it reads, `reconcile.ts`
 * acts.
 *
 * The promises of this file:
 * - a volume that needs attaching is not touched before the server has confirmed that it is in `volumesInUse`, and a
 *   node object at least that new lists it as attached;
 * - once a node, then once a pod; what leaves a pod leaves it before another pod gets the volume;
 * - nothing is taken down before all pods of the node are known, nor from a live pod of which a volume cannot be
 *   followed: it may be this one;
 * - nothing is taken from a pod, nor let go, before the kernel said that no process has it;
 * - what may be there is taken down like what is there.
 */
export function planVolume(volume: VolumeState, around: Surroundings): Plan {
  const draft = new Draft();
  const leaving = planUnmounts(volume, around, draft);
  planMounts(volume, around, { draft, leaving });
  if (!isStillFit(volume)) planRelease(volume, around, draft);
  else planGivingWay(volume, around, draft);
  return draft;
}

/** Whether what is mounted serves somebody: with another label or name than everybody wants it is let go like one nobody wants. */
function isStillFit({ wants, held }: VolumeState): boolean {
  if (wants.size === 0 || !held) return wants.size > 0;
  return [...wants.values()].some((want) => hasFittingLabel(held, want) && hasFittingName(held, want));
}

/** A pod that has it already keeps it: labels of what runs are not changed under it. */
function hasFittingLabel(held: Held, { podUid, selinuxLabel }: Want): boolean {
  const mounted = mountedLabel(held);
  return mounted === undefined || mounted === selinuxLabel || held.mounts.has(podUid);
}

/** Everything of a block volume hangs on its PersistentVolume's name: under another one it is staged anew. */
function hasFittingName(held: Held, { podUid, spec, mode }: Want): boolean {
  if (mode !== "Block" || held.unknown || !isHere(held) || held.mounts.has(podUid)) return true;
  return specName(held.spec) === specName(spec);
}

interface Mounting {
  readonly draft: Draft;
  /** The pod that it leaves. */
  readonly leaving: string | undefined;
}

function planMounts(volume: VolumeState, around: Surroundings, mounting: Mounting): void {
  const { draft, leaving } = mounting;
  for (const want of volume.wants.values()) {
    const traits = around.traits(want);
    if (!volume.held) {
      planAttached(volume, want, { around, draft, traits });
      continue;
    }
    const mount = volume.held.mounts.get(want.podUid);
    if (want.replaced !== undefined) draft.wait(want.podUid, waitForReplaced(want, want.replaced));
    const next = nextStep(volume, { held: volume.held, want, mount, traits });
    if (next === undefined) continue;
    if (volume.held.attachable === "no" && traits.attachable === "yes") {
      // Taken on while its driver needed no attach, and it does by now: nothing of it is touched before it is attached.
      planAttached(volume, want, { around, draft, traits });
      continue;
    }
    if (isFirstTouch(volume, { held: volume.held, next, traits }) && isUnlisted(around, traits)) {
      planAttached(volume, want, { around, draft, traits });
      continue;
    }
    // One step of a volume at a time, and none while it leaves a pod: CSI wants one call in flight a volume.
    const shared = traits.deviceMountable || traits.attachable !== "no";
    const busy = shared
      ? draft.actions.some(isStep) || volume.running[0]
      : volume.running.find(({ podUid }) => podUid === want.podUid);
    if (busy || (shared && leaving !== undefined)) {
      const running = typeof busy === "object" ? busy : volume.running[0];
      draft.wait(want.podUid, waitInLine(volume, want, { running, around, draft, leaving }));
      continue;
    }
    planStep(volume, next, { around, draft, want });
  }
}

/** Whether the step brings a volume to the node of which nothing is mounted there, as after a reboot. */
function isFirstTouch(
  volume: VolumeState,
  { held, next, traits }: { readonly held: Held; readonly next: Step; readonly traits: VolumeTraits },
): boolean {
  if (next.kind === "mount-device") return true;
  if (next.kind !== "mount" || hasDeviceStep(volume, next.want, traits)) return false;
  return ![...held.mounts.values()].some(({ state }) => state === "mounted");
}

/**
 * What was found on disk after a start was attached once. A controller may be taking it off the node since: it unlists it first, so
 * that a volume that is not listed is about to go, although its VolumeAttachment is there and attached.
 */
function isUnlisted(around: Surroundings, { attachable }: VolumeTraits): boolean {
  if (attachable === "no" || !around.controllerAttaches) return false;
  return attachable === "unknown" || !around.reportedInUse || around.attachedPath === undefined;
}

/** A pod in line waits for the step that runs, else for what keeps the volume with the pod that it leaves. */
function waitInLine(
  volume: VolumeState,
  want: Want,
  {
    running,
    around,
    draft,
    leaving,
  }: Mounting & { readonly around: Surroundings; readonly running: Running | undefined },
): Wait {
  const planned = draft.actions.find(isStep);
  // It begins as soon as this plan is carried out, and nothing is planned again before it has ended.
  const step = running ?? (planned && { ...operationOf(volume, planned), sinceMs: around.nowMs });
  if (step) {
    const waits = waitForStep(volume, doingOf(volume, step, around));
    // That its own volume is slow to mount is no failure; how it ends is told in any case.
    return isFor(want, step) ? waits : toldTo(want, waits);
  }
  const kept = leaving === undefined ? undefined : draft.waits.get(leaving)?.message;
  if (kept === undefined || leaving === undefined) return waitForStep(volume, undefined);
  const first = `${volume.name} is taken from ${around.podName(leaving)} first; ${kept}`;
  return toldTo(want, waitForStep(volume, first));
}

/** Whether the step brings the pod nearer to its volume. */
function isFor({ podUid }: Want, step: Pick<Running, "operation" | "podUid">): boolean {
  if (step.podUid !== undefined) return step.podUid === podUid;
  const { operation } = step;
  return operation !== "unmount_device" && operation !== "unmap_device" && operation !== "volume_detach";
}

type StepAction = Exclude<
  Action,
  { readonly kind: "forget" | "mark-attached" | "abandon" | "disown" | "look-for-holders" }
>;

function isStep(action: Action): action is StepAction {
  const { kind } = action;
  return (
    kind !== "forget" &&
    kind !== "mark-attached" &&
    kind !== "abandon" &&
    kind !== "disown" &&
    kind !== "look-for-holders"
  );
}

type Step = Extract<Action, { kind: "mount-device" | "mount" | "expand" }>;

function nextStep(
  volume: VolumeState,
  state: {
    readonly held: Held;
    readonly want: Want;
    readonly mount: PodMount | undefined;
    readonly traits: VolumeTraits;
  },
): Step | undefined {
  const { held, want, mount, traits } = state;
  const usable = mount?.state === "mounted";
  if (usable && !mount.remountRequired)
    return needsGrowth(held, want, traits) ? { kind: "expand", want, mount } : undefined;
  if (hasDeviceStep(volume, want, traits) && held.device !== "mounted" && !usable)
    return { kind: "mount-device", want };
  return { kind: "mount", want };
}

function needsGrowth(held: Held, want: Want, { expandable }: VolumeTraits): boolean {
  if (want.replaced !== undefined) return false;
  return expandable && !held.expansionRefused && held.sizeBytes > 0 && want.sizeBytes > held.sizeBytes;
}

/** Whether something is done once a node before it is done once a pod. */
export function hasDeviceStep(volume: VolumeState, want: Want, traits: VolumeTraits): boolean {
  return want.mode === "Block" ? volume.plugin.block?.setUpDevice !== undefined : traits.deviceMountable;
}

function planStep(
  volume: VolumeState,
  step: Step,
  { around, draft, want }: { readonly around: Surroundings; readonly draft: Draft; readonly want: Want },
): void {
  if (volume.held && !hasFittingLabel(volume.held, want)) {
    draft.wait(want.podUid, waitForLabel(volume, want));
    return;
  }
  if (volume.held && !hasFittingName(volume.held, want)) {
    draft.wait(want.podUid, waitForOldName(volume, volume.held));
    return;
  }
  const namesake = around.namesake(want);
  if (namesake !== undefined) {
    draft.wait(want.podUid, waitForNamesake(volume, namesake));
    return;
  }
  const holder = otherHolder(volume, want);
  if (holder !== undefined) {
    draft.wait(want.podUid, waitForHolder(volume, want, holder));
    return;
  }
  const { operation, podUid } = operationOf(volume, step);
  const late = lateAgainst(volume, operation, podUid);
  if (late) {
    draft.wait(want.podUid, toldTo(want, waitForLate(volume, late, around), { afterMs: 0 }));
    return;
  }
  const backoff = around.backoff(operation, podUid);
  if (backoff) {
    draft.wait(want.podUid, waitForBackoff(volume, backoff));
    return;
  }
  draft.act(step);
  // What a pod of which an object was replaced waits for is told in any case.
  if (want.replaced === undefined)
    draft.wait(want.podUid, waitForBegun(volume, { operation, podUid }, around));
}

function operationOf(
  volume: VolumeState,
  step: StepAction,
): { readonly operation: OperationName; readonly podUid: string | undefined } {
  const podUid = undefined;
  switch (step.kind) {
    case "attach":
      return { operation: "volume_attach", podUid };
    case "detach":
      return { operation: "volume_detach", podUid };
    case "mount-device":
      return { operation: step.want.mode === "Block" ? "map_device" : "mount_device", podUid };
    case "mount":
      return {
        operation: step.want.mode === "Block" ? "map_volume" : "volume_mount",
        podUid: step.want.podUid,
      };
    case "expand":
      return { operation: "volume_fs_resize", podUid };
    case "unmount":
      return { operation: unmountName(volume), podUid: step.mount.podUid };
    case "unmount-device":
      return { operation: unstageName(volume), podUid };
    default:
      return unreachable(step);
  }
}

/** Another pod that has, or may have, a volume only one pod may have. */
function otherHolder({ held }: VolumeState, { podUid, spec }: Want): string | undefined {
  const modes = spec.kind === "persistent" ? spec.volume.spec?.accessModes : undefined;
  if (!Array.isArray(modes) || modes.length !== 1 || modes[0] !== "ReadWriteOncePod") return undefined;
  return [...(held?.mounts.keys() ?? [])].find((other) => other !== podUid);
}

function planAttached(
  volume: VolumeState,
  want: Want,
  { around, draft, traits }: { around: Surroundings; draft: Draft; traits: VolumeTraits },
): void {
  if (draft.actions.some(({ kind }) => kind === "mark-attached")) return;
  const { attachedPath, reportedInUse, nodeName } = around;
  const object: WaitingObject = { kind: "Node", name: nodeName };
  switch (traits.attachable) {
    case "no": {
      draft.act({ kind: "mark-attached", devicePath: "" });
      return;
    }
    case "unknown": {
      draft.wait(
        want.podUid,
        wait(
          "driver-unknown",
          { kind: "CSIDriver", name: volume.name },
          `whether ${volume.name} needs attaching is not known: the CSIDriver objects have not been read yet`,
        ),
      );
      return;
    }
    case "yes":
      if (!around.controllerAttaches) {
        planAttach(volume, want, { around, draft });
        return;
      }
      if (!reportedInUse) {
        draft.wait(
          want.podUid,
          wait(
            "in-use-not-reported",
            object,
            `the API server has not confirmed yet that node ${nodeName} uses ${volume.name}`,
          ),
        );
        return;
      }
      if (attachedPath === undefined) {
        draft.wait(
          want.podUid,
          wait(
            "not-attached",
            object,
            `node ${nodeName} does not list ${volume.name} as attached; the attach/detach controller does that`,
          ),
        );
        return;
      }
      {
        draft.act({ kind: "mark-attached", devicePath: attachedPath });
        return;
      }
    default:
      unreachable(traits.attachable);
  }
}

function planAttach(
  volume: VolumeState,
  want: Want,
  { around, draft }: { readonly around: Surroundings; readonly draft: Draft },
): void {
  const backoff = around.backoff("volume_attach");
  const busy = volume.running[0] ?? draft.actions.find(isStep);
  const line = { running: volume.running[0], around, draft, leaving: undefined };
  if (busy) draft.wait(want.podUid, waitInLine(volume, want, line));
  else if (backoff) draft.wait(want.podUid, waitForBackoff(volume, backoff));
  else {
    draft.act({ kind: "attach", want });
    draft.wait(want.podUid, waitForBegun(volume, { operation: "volume_attach", podUid: undefined }, around));
  }
}
