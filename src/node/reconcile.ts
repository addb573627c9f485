import { unreachable } from "../base/assert.ts";
import type { Outcome } from "../kube/workqueue/controller.ts";
import type { VolumeName } from "../volumes/names.ts";
import { specName as specNameOf } from "../volumes/spec.ts";
import { forget, markAttached, removeMount } from "./actual.ts";
import { mark, tellPod, type Context } from "./context.ts";
import type { EvidenceLook } from "./evidence/evidence.ts";
import { startAttach, startDetach } from "./steps/attach.ts";
import { startExpand } from "./steps/expand.ts";
import { startMap, startMapDevice, startUnmap, startUnmapDevice } from "./steps/map.ts";
import { startMount, startMountDevice } from "./steps/mount.ts";
import { operationKey } from "./steps/operation.ts";
import { planVolume } from "./plan.ts";
import type { Action, Plan, Surroundings, Wait } from "./plan-draft.ts";
import { namesakeOf, waitingForPlace } from "./replaced.ts";
import { isConfirmation } from "./restart/confirm.ts";
import { startUnmount, startUnmountDevice } from "./steps/unmount.ts";
import type { PodMount, VolumeState } from "./world.ts";

/** Looks at one volume: plans it from what is known now, does what the plan says, keeps why it waits. */
export function reconcileVolume(context: Context, name: VolumeName): Outcome {
  const volume = context.world.volumes.get(name);
  if (volume === undefined) {
    context.confirmations.release(name);
    return { kind: "done" };
  }
  const evidence = context.evidence.lookAt(volume);
  const plan = inTurn(context, volume, planVolume(volume, surroundingsOf(context, volume, evidence)));
  evidence.end();
  const tellAtMs = remember(context, volume, plan);
  for (const action of plan.actions) perform(context, volume, action);
  const revisitAtMs = Math.min(plan.revisitAtMs ?? Infinity, tellAtMs);
  return revisitAtMs === Infinity
    ? { kind: "done" }
    : { kind: "after", ms: Math.max(0, revisitAtMs - context.clock.now()) };
}

/** Leaves out for now what only makes sure of something that is there, while others of its driver do that. */
function inTurn({ confirmations, clock }: Context, volume: VolumeState, plan: Plan): Plan {
  const confirming = plan.actions.filter((action) => isConfirmation(volume, action));
  if (confirming.length === 0) {
    if (volume.running.length === 0) confirmations.release(volume.name);
    return plan;
  }
  const untilMs = confirmations.claim(volume, clock.now());
  if (untilMs === undefined) return plan;
  const { name } = volume;
  const message = `${name} was found after a start and is made sure of when others of its driver were`;
  const wait: Wait = { reason: "taking-turns", object: { kind: "Volume", name }, message, untilMs };
  const waits = new Map(plan.waits);
  for (const action of confirming) if ("want" in action) waits.set(action.want.podUid, wait);
  return {
    actions: plan.actions.filter((action) => !confirming.includes(action)),
    waits,
    revisitAtMs: Math.min(plan.revisitAtMs ?? Infinity, untilMs),
  };
}

function surroundingsOf(context: Context, volume: VolumeState, evidence: EvidenceLook): Surroundings {
  const { clock, operations, inUse, nodeName } = context;
  const nowMs = clock.now();
  return {
    nowMs,
    nodeName,
    traits: ({ spec }) => volume.plugin.traits(spec),
    readyToUnmount: context.readyToUnmount(),
    unresolved: (podUid) => unresolvedOf(context, podUid),
    isLive: (podUid) => context.world.pods.has(podUid),
    namesake: (want) => namesakeOf(context.world, volume, want)?.name,
    adopter: (mount) => adopterOf(context, volume, mount),
    loading: context.world.loading.size > 0,
    controllerAttaches: context.controllerAttaches,
    reportedInUse: inUse.isReported(volume.name),
    attachedPath: inUse.attachedPath(volume.name),
    evidence: (podUid) => evidence.finding(podUid),
    backoff: (operation, podUid) => {
      const backoff = operations.backoffOf(operationKey(volume, podUid), operation, nowMs);
      return backoff && { ...backoff, operation };
    },
    podName: (podUid) => context.world.podName(podUid),
    timeOf: (ms) => new Date(clock.wall().getTime() + ms - nowMs).toISOString(),
  };
}

function unresolvedOf({ world }: Context, podUid: string): string | undefined {
  for (const [name, { kind }] of world.pods.get(podUid)?.references ?? [])
    if (kind === "unresolved") return name;
  return undefined;
}

/** Spec names are unique below a plugin and pod, so the same one is the same directory. */
function adopterOf({ world }: Context, volume: VolumeState, { podUid, specName }: PodMount) {
  for (const { plugin, wants, held } of world.volumesOf(podUid)) {
    const want = wants.get(podUid);
    if (plugin !== volume.plugin || !want || specNameOf(want.spec) !== specName) continue;
    if (held?.mounts.has(podUid)) return "holds" as const;
    return want.mode === "Block" ? ("wants-place" as const) : ("wants" as const);
  }
  return undefined;
}

/** Keeps why each waits and since when; answers when the next of them is to be told of it. */
function remember(context: Context, volume: VolumeState, { waits }: Plan): number {
  const nowMs = context.clock.now();
  let tellAtMs = Infinity;
  for (const key of volume.waits.keys()) if (!waits.has(key)) volume.waits.delete(key);
  for (const [key, { tell, ...wait }] of waits) {
    const before = volume.waits.get(key);
    const same = before?.reason === wait.reason && before.object.name === wait.object.name;
    const sinceMs = same ? before.sinceMs : nowMs;
    const pod = volume.wants.get(key)?.pod;
    const wasTold = same && before.told === true;
    const dueMs = tell && pod && !wasTold ? sinceMs + tell.afterMs : Infinity;
    const told = wasTold || dueMs <= nowMs;
    volume.waits.set(key, { ...wait, sinceMs, told });
    if (dueMs > nowMs) tellAtMs = Math.min(tellAtMs, dueMs);
    else if (tell && pod)
      tellPod(context, pod, { type: "Warning", reason: "FailedMount", message: tell.message });
  }
  return tellAtMs;
}

function perform(context: Context, volume: VolumeState, action: Action): void {
  switch (action.kind) {
    case "mark-attached":
      noteAttached(context, volume, action.devicePath);
      break;
    case "attach":
      startAttach(context, volume, action.want);
      break;
    case "detach":
      startDetach(context, volume);
      break;
    case "mount-device":
      (action.want.mode === "Block" ? startMapDevice : startMountDevice)(context, volume, action.want);
      break;
    case "mount":
      (action.want.mode === "Block" ? startMap : startMount)(context, volume, action.want);
      break;
    case "expand":
      startExpand(context, volume, action);
      break;
    case "unmount":
      (volume.held?.mode === "Block" ? startUnmap : startUnmount)(context, volume, action.mount);
      break;
    case "unmount-device":
      (volume.held?.mode === "Block" ? startUnmapDevice : startUnmountDevice)(context, volume);
      break;
    case "look-for-holders":
      context.evidence.ask(volume, action.podUid);
      break;
    case "disown":
      disown(context, volume, action.mount);
      break;
    case "forget":
      forgetVolume(context, volume);
      break;
    case "abandon":
      volume.running
        .find(({ podUid }) => (podUid ?? "") === action.podUid)
        ?.abort.abort(new Error("nobody wants the volume for this pod any more"));
      break;
    default:
      unreachable(action);
  }
}

function noteAttached(context: Context, volume: VolumeState, devicePath: string): void {
  const [want] = volume.wants.values();
  if (!want) return;
  const { spec, mode } = want;
  const { attachable } = volume.plugin.traits(spec);
  markAttached(volume, { spec, mode, devicePath, attachable: attachable === "no" ? "no" : "yes" });
  mark(context, volume);
}

function disown(context: Context, volume: VolumeState, { podUid }: PodMount): void {
  const { held } = volume;
  if (!held) return;
  removeMount(context.world, volume, podUid);
  // What is staged belongs to the volume by its own name.
  if (held.mounts.size === 0) held.device = "not-mounted";
  mark(context, volume);
}

function forgetVolume(context: Context, volume: VolumeState): void {
  if (volume.held?.mode === "Block")
    for (const other of waitingForPlace(context.world, volume)) mark(context, other);
  forget(volume);
  void context.journal.settle(volume);
  if (context.world.tidy(volume)) context.operations.forget(volume.name);
  context.inUse.touch(volume.name);
  context.inUse.changed();
}
