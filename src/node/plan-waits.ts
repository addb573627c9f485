import { specName } from "../volumes/spec.ts";
import type { Finding } from "./evidence/evidence.ts";
import type { Backoff, Surroundings, Wait } from "./plan-draft.ts";
import { callText } from "./steps/calls.ts";
import type { WaitingObject, WaitingReason } from "./waiting.ts";
import type { Held, LateCall, PodMount, Running, VolumeState, Want } from "./world.ts";

/** Why a volume waits, one function a reason: what has to change, and a sentence for people. */
export function wait(reason: WaitingReason, object: WaitingObject, message: string): Wait {
  return { reason, object, message };
}

export function waitForSync({ name }: VolumeState, { nodeName }: Surroundings): Wait {
  return wait(
    "not-synced",
    { kind: "Node", name: nodeName },
    `${name} is taken down once the pods of node ${nodeName} and its status were read`,
  );
}

/** Unsure means keep: after a restart this is how every pod that runs looks until its claims were read. */
export function waitForPod({ name }: VolumeState, podUid: string, unresolved: string): Wait {
  const message = `pod ${podUid} is alive and may be using ${name}: its volume ${unresolved} cannot be followed`;
  return wait("pod-unresolved", { kind: "Pod", name: podUid }, message);
}

export function waitForEnd({ name }: VolumeState, podUid: string): Wait {
  const message = `${name} is mounted for pod ${podUid}, which none of the pod's volumes leads to any more; it stays until the pod ends`;
  return wait("volume-replaced", { kind: "Pod", name: podUid }, message);
}

export function waitForReplaced({ pod }: Want, message: string): Wait {
  const { name = "", namespace = "" } = pod.metadata;
  return wait("volume-replaced", { kind: "Pod", name, namespace }, message);
}

export function waitForNamesake({ name }: VolumeState, namesake: string): Wait {
  const message = `${name} is mapped where ${namesake} still is: their PersistentVolumes had one name; it waits until that is gone from this node`;
  return wait("volume-replaced", { kind: "Volume", name: namesake }, message);
}

export function waitForOldName({ name }: VolumeState, { spec }: Held): Wait {
  const message = `${name} is mapped by the name that its PersistentVolume had, ${specName(spec)}; it waits until that is gone from this node`;
  return wait("volume-replaced", { kind: "Volume", name }, message);
}

/** Taken down now it would be taken from under the pod's containers. */
export function waitForAdopter({ name }: VolumeState, { podUid, specName }: PodMount): Wait {
  const message = `${name} was found after a start and may be ${specName} of pod ${podUid}, whose mount takes it over`;
  return wait("adopting", { kind: "Pod", name: podUid }, message);
}

export function waitForProcess(
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

/** Of whoever waits for a volume that something else is done to: told where that takes long, which a hung driver does. */
const HUNG_MS = 30_000;

/** Another step of the volume has to end first. */
export function waitForStep({ name }: VolumeState, doing: string | undefined): Wait {
  return wait("step-running", { kind: "Volume", name }, doing ?? `another step of ${name} is under way`);
}

/** A step that begins as soon as this plan is carried out: a driver may take minutes for it, and nothing is planned again before it has ended. */
export function waitForBegun(
  volume: VolumeState,
  step: Pick<Running, "operation" | "podUid">,
  around: Surroundings,
): Wait {
  return waitForStep(volume, doingOf(volume, { ...step, sinceMs: around.nowMs }, around));
}

/** Such a wait of a pod that wants the volume: its owner sees a pod that does not start, and no failure of its own. */
export function toldTo(want: Want, waits: Wait, { afterMs = HUNG_MS } = {}): Wait {
  const message = `volume "${volumeNameOf(want)}" is not mounted yet: ${waits.message}`;
  return { ...waits, tell: { message, afterMs } };
}

/** What a step that runs is doing, for whom and since when. */
export function doingOf(
  volume: VolumeState,
  step: Pick<Running, "operation" | "podUid" | "sinceMs">,
  around: Surroundings,
): string {
  const { operation, podUid, sinceMs } = step;
  const whom = podUid === undefined ? "" : ` for ${around.podName(podUid)}`;
  return `${callText(volume, operation)} of ${volume.name}${whom} is under way since ${around.timeOf(sinceMs)}`;
}

export function waitForLate(volume: VolumeState, call: LateCall, around: Surroundings): Wait {
  const { name } = volume;
  const { operation, podUid, untilMs } = call;
  const whom = podUid === undefined ? "" : ` for ${around.podName(podUid)}`;
  const message = `${callText(volume, operation)} of ${name}${whom} got no answer in time and its driver may be at it still; ${name} stays in use until it has had as long again, or the driver restarts`;
  return { ...wait("call-unanswered", { kind: "Volume", name }, message), untilMs };
}

export function waitForBackoff(volume: VolumeState, { operation, untilMs, lastError }: Backoff): Wait {
  const { name } = volume;
  const message = `${callText(volume, operation)} failed: ${lastError}`;
  return { ...wait("backoff", { kind: "Volume", name }, message), untilMs };
}

export function waitForLabel({ name }: VolumeState, want: Want): Wait {
  const volumeName = volumeNameOf(want);
  const why = `waiting for unmount of volume "${volumeName}", because it is already mounted to a different pod with a different SELinux label`;
  return { ...wait("selinux-mismatch", { kind: "Volume", name }, why), tell: { message: why, afterMs: 0 } };
}

const RWOP_TEXT = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

export function waitForHolder({ name }: VolumeState, want: Want, podUid: string): Wait {
  const step = want.mode === "Block" ? "MapVolume.SetUpDevice" : "MountVolume.SetUp";
  const volumeName = volumeNameOf(want);
  return {
    ...wait("held-by-other-pod", { kind: "Volume", name }, `${RWOP_TEXT} (uid ${podUid})`),
    tell: { message: `${step} failed for volume "${volumeName}" : ${RWOP_TEXT}`, afterMs: 0 },
  };
}

/** As upstream's events name it. */
function volumeNameOf({ spec }: Want): string {
  return spec.kind === "persistent" ? (spec.volume.metadata.name ?? "") : spec.volume.name;
}
