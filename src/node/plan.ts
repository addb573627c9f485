import { unreachable } from "../base/assert.ts";
import type { Finding } from "./evidence/evidence.ts";
import type { VolumeTraits } from "./plugin.ts";
import type { WaitingFor, WaitingObject, WaitingReason } from "./waiting.ts";
import { lateAgainst } from "./late-calls.ts";
import { mountedLabel } from "./steps/selinux.ts";
import type { Held, LateCall, OperationName, PodMount, VolumeState, Want } from "./world.ts";

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
export interface Plan {
  readonly actions: readonly Action[];
  /** By pod uid; "" for the volume itself. */
  readonly waits: ReadonlyMap<string, Wait>;
  /** In the clock's `now()`: look again then, even if nothing happens. */
  readonly revisitAtMs: number | undefined;
}

/** Since when is known to whoever saw the wait before. */
export type Wait = Omit<WaitingFor, "sinceMs"> & {
  /** What the pod should be told once, when the wait begins. */
  readonly tell?: string;
};

export type Action =
  /** It is there for us now: nothing to do but to note it. */
  | { readonly kind: "mark-attached"; readonly devicePath: string }
  /** Where no controller does that. */
  | { readonly kind: "attach"; readonly want: Want }
  | { readonly kind: "detach" }
  | { readonly kind: "mount-device"; readonly want: Want }
  | { readonly kind: "mount"; readonly want: Want }
  | { readonly kind: "expand"; readonly want: Want; readonly mount: PodMount }
  | { readonly kind: "unmount"; readonly mount: PodMount }
  | { readonly kind: "unmount-device" }
  /** Who has it is asked of the kernel; the answer brings the volume back. "" asks for the volume itself. */
  | { readonly kind: "look-for-holders"; readonly podUid: string }
  /** Nothing of it is left on this node. */
  | { readonly kind: "forget" }
  /** Found without a name, and the pod has it by its own name now: that one is taken down when its time comes. */
  | { readonly kind: "disown"; readonly mount: PodMount }
  /** A mount under way is for a pod that is gone. */
  | { readonly kind: "abandon"; readonly podUid: string };

/** What the plan needs to know besides the volume. */
export interface Surroundings {
  readonly nowMs: number;
  readonly nodeName: string;
  readonly traits: (want: Want) => VolumeTraits;
  /** All pods are known and, after a restart, so is the node's status. */
  readonly readyToUnmount: boolean;
  /** A volume of this live pod that cannot be followed right now, and so may be this one. */
  readonly unresolved: (podUid: string) => string | undefined;
  /** Its containers may run. */
  readonly isLive: (podUid: string) => boolean;
  /** Another volume that lies where this one would. */
  readonly namesake: (want: Want) => string | undefined;
  /** How a pod that wants a volume of this plugin by the same name stands to it; undefined where none does. */
  readonly adopter: (mount: PodMount) => "wants" | "holds" | undefined;
  /** Some pod asked for objects that have not come yet. */
  readonly loading: boolean;
  /** False: this node attaches for itself. */
  readonly controllerAttaches: boolean;
  /** The server has confirmed it in `volumesInUse`. */
  readonly reportedInUse: boolean;
  /** From a node object no older than that confirmation; undefined where it does not list the volume. */
  readonly attachedPath: string | undefined;
  /** What the kernel said of who has it, for a pod or, with "", for the volume; undefined where it was not asked. */
  readonly evidence: (podUid: string) => Finding | undefined;
  readonly backoff: (operation: OperationName, podUid?: string) => Backoff | undefined;
}

export interface Backoff {
  readonly untilMs: number;
  readonly lastError: string;
}

export function planVolume(volume: VolumeState, around: Surroundings): Plan {
  const draft = new Draft();
  const leaving = planUnmounts(volume, around, draft);
  planMounts(volume, around, { draft, leaving });
  if (!isStillFit(volume)) planRelease(volume, around, draft);
  return draft;
}

/** Whether what is mounted serves somebody: with another label than everybody wants it is let go like one nobody wants. */
function isStillFit({ wants, held }: VolumeState): boolean {
  if (wants.size === 0 || !held) return wants.size > 0;
  return [...wants.values()].some((want) => hasFittingLabel(held, want));
}

/** A pod that has it already keeps it: labels of what runs are not changed under it. */
function hasFittingLabel(held: Held, { podUid, selinuxLabel }: Want): boolean {
  const mounted = mountedLabel(held);
  return mounted === undefined || mounted === selinuxLabel || held.mounts.has(podUid);
}

class Draft implements Plan {
  readonly actions: Action[] = [];
  readonly waits = new Map<string, Wait>();
  revisitAtMs: number | undefined;

  act(action: Action): undefined {
    this.actions.push(action);
  }

  wait(key: string, wait: Wait): undefined {
    this.waits.set(key, wait);
    if (wait.untilMs !== undefined) this.revisitAtMs = Math.min(this.revisitAtMs ?? Infinity, wait.untilMs);
  }
}

/** Whether anything of the volume is on its way out of a pod, or should be. */
function planUnmounts(volume: VolumeState, around: Surroundings, draft: Draft): boolean {
  let leaving = false;
  for (const mount of volume.held?.mounts.values() ?? []) {
    if (volume.wants.has(mount.podUid)) continue;
    leaving = true;
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
  const running = volume.running.find((other) => other.exclusive || other.podUid === podUid);
  if (running) {
    draft.wait(podUid, waitForStep(volume, running.operation));
    return;
  }
  const late = lateAgainst(volume, unmountName(volume), podUid);
  if (late) {
    draft.wait(podUid, waitForLate(volume, late));
    return;
  }
  const backoff = around.backoff(unmountName(volume), podUid);
  if (backoff) {
    draft.wait(podUid, waitForBackoff(volume, backoff));
    return;
  }
  if (isLetGo(volume, podUid, { around, draft })) draft.act({ kind: "unmount", mount });
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

interface Mounting {
  readonly draft: Draft;
  readonly leaving: boolean;
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
    // One step of a volume at a time, and none while it leaves a pod: CSI wants one call in flight a volume.
    const shared = traits.deviceMountable || traits.attachable !== "no";
    const busy = shared
      ? draft.actions.some(isStep) || volume.running[0]
      : volume.running.find(({ podUid }) => podUid === want.podUid);
    if (busy || (shared && leaving)) {
      const running = typeof busy === "object" ? busy.operation : volume.running[0]?.operation;
      draft.wait(want.podUid, waitForStep(volume, running));
      continue;
    }
    planStep(volume, next, { around, draft, want });
  }
}

function isStep({ kind }: Action): boolean {
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
  const late = lateAgainst(volume, ...operationOf(step));
  if (late) {
    draft.wait(want.podUid, waitForLate(volume, late));
    return;
  }
  const backoff = around.backoff(...operationOf(step));
  if (backoff) {
    draft.wait(want.podUid, waitForBackoff(volume, backoff));
    return;
  }
  draft.act(step);
}

function operationOf(step: Step): [OperationName, string | undefined] {
  const { want } = step;
  const block = want.mode === "Block";
  switch (step.kind) {
    case "mount-device":
      return [block ? "map_device" : "mount_device", undefined];
    case "mount":
      return [block ? "map_volume" : "volume_mount", want.podUid];
    case "expand":
      return ["volume_fs_resize", undefined];
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
  if (busy) draft.wait(want.podUid, waitForStep(volume, volume.running[0]?.operation));
  else if (backoff) draft.wait(want.podUid, waitForBackoff(volume, backoff));
  else draft.act({ kind: "attach", want });
}

/** Nobody wants it: the step once a node is undone, then it is forgotten. */
function planRelease(volume: VolumeState, around: Surroundings, draft: Draft): void {
  const { held } = volume;
  if (!held || held.mounts.size > 0) return;
  if (!around.readyToUnmount || around.loading) {
    draft.wait("", waitForSync(volume, around));
    return;
  }
  const running = volume.running[0];
  if (running) {
    draft.wait("", waitForStep(volume, running.operation));
    return;
  }
  // What a driver may be at still is waited for, and in use until then: also where nothing of the volume is here now.
  const undo = held.mode === "Block" ? "unmap_device" : "unmount_device";
  const late = held.device === "not-mounted" ? volume.late[0] : lateAgainst(volume, undo, undefined);
  if (late) {
    draft.wait("", waitForLate(volume, late));
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
  if (isLetGo(volume, "", { around, draft })) draft.act({ kind: "unmount-device" });
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
  else draft.act({ kind: "detach" });
}

function isDeviceMount(operation: OperationName): boolean {
  return operation === "mount_device" || operation === "map_device";
}

export function unmountName({ held }: VolumeState): OperationName {
  return held?.mode === "Block" ? "unmap_volume" : "volume_unmount";
}

function wait(reason: WaitingReason, object: WaitingObject, message: string): Wait {
  return { reason, object, message };
}

function waitForSync({ name }: VolumeState, { nodeName }: Surroundings): Wait {
  return wait(
    "not-synced",
    { kind: "Node", name: nodeName },
    `${name} is taken down once the pods of node ${nodeName} and its status were read`,
  );
}

/** Unsure means keep: after a restart this is how every pod that runs looks until its claims were read. */
function waitForPod({ name }: VolumeState, podUid: string, unresolved: string): Wait {
  const message = `pod ${podUid} is alive and may be using ${name}: its volume ${unresolved} cannot be followed`;
  return wait("pod-unresolved", { kind: "Pod", name: podUid }, message);
}

function waitForEnd({ name }: VolumeState, podUid: string): Wait {
  const message = `${name} is mounted for pod ${podUid}, which none of the pod's volumes leads to any more; it stays until the pod ends`;
  return wait("volume-replaced", { kind: "Pod", name: podUid }, message);
}

function waitForReplaced({ pod }: Want, message: string): Wait {
  const { name = "", namespace = "" } = pod.metadata;
  return wait("volume-replaced", { kind: "Pod", name, namespace }, message);
}

function waitForNamesake({ name }: VolumeState, namesake: string): Wait {
  const message = `${name} is mapped where ${namesake} still is: their PersistentVolumes had one name; it waits until that is gone from this node`;
  return wait("volume-replaced", { kind: "Volume", name: namesake }, message);
}

/** Taken down now it would be taken from under the pod's containers. */
function waitForAdopter({ name }: VolumeState, { podUid, specName }: PodMount): Wait {
  const message = `${name} was found after a start and may be ${specName} of pod ${podUid}, whose mount takes it over`;
  return wait("adopting", { kind: "Pod", name: podUid }, message);
}

function waitForProcess(
  { name }: VolumeState,
  finding: Finding | undefined,
  { isDue }: { isDue: boolean },
): Wait {
  const held = finding?.kind === "asked" ? finding.before : finding;
  if (held?.kind !== "held")
    return wait(
      "looking-for-holders",
      { kind: "Volume", name },
      `whether a process still has ${name} is being looked at`,
    );
  const { by, message, untilMs } = held;
  const stays = wait("held-by-process", { kind: "Process", name: by }, message);
  return finding?.kind === "asked" || isDue ? stays : { ...stays, untilMs };
}

function waitForStep({ name }: VolumeState, operation: OperationName | undefined): Wait {
  const what = operation === undefined ? "another step" : operation;
  return wait("step-running", { kind: "Volume", name }, `${what} of ${name} is under way`);
}

function waitForLate({ name }: VolumeState, { operation, untilMs }: LateCall): Wait {
  const message = `${operation} of ${name} got no answer in time and its driver may be at it still; ${name} stays in use until it has had as long again, or the driver restarts`;
  return { ...wait("call-unanswered", { kind: "Volume", name }, message), untilMs };
}

function waitForBackoff({ name }: VolumeState, { untilMs, lastError }: Backoff): Wait {
  return { ...wait("backoff", { kind: "Volume", name }, lastError), untilMs };
}

function waitForLabel({ name }: VolumeState, { spec }: Want): Wait {
  const volumeName = spec.kind === "persistent" ? (spec.volume.metadata.name ?? "") : spec.volume.name;
  const why = `waiting for unmount of volume "${volumeName}", because it is already mounted to a different pod with a different SELinux label`;
  return { ...wait("selinux-mismatch", { kind: "Volume", name }, why), tell: why };
}

const RWOP_TEXT = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

function waitForHolder({ name }: VolumeState, { mode, spec }: Want, podUid: string): Wait {
  const step = mode === "Block" ? "MapVolume.SetUpDevice" : "MountVolume.SetUp";
  const volumeName = spec.kind === "persistent" ? (spec.volume.metadata.name ?? "") : spec.volume.name;
  return {
    ...wait("held-by-other-pod", { kind: "Volume", name }, `${RWOP_TEXT} (uid ${podUid})`),
    tell: `${step} failed for volume "${volumeName}" : ${RWOP_TEXT}`,
  };
}
