import type {
  Container,
  ContainerState,
  ContainerStatus,
  PodCondition,
  PodStatus,
} from "kubernetes-types/core/v1.js";
import { unreachable } from "../../base/assert.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { formatTime } from "../../kube/time.ts";
import type { StatusWrite } from "./plan.ts";

/**
 * The status of a pod whose containers are only said to run: there is no container runtime, a pod here holds volumes and
 * nothing else. Fields and words are those a kubelet writes, so that whoever waits for a pod to be ready need not know.
 */
export interface StatusFacts {
  readonly now: Date;
  /** Of the node; there is no network of pods, so it is the pod's as well. */
  readonly hostIP: string;
}

export function statusFor(pod: Pod, { what, message = "" }: StatusWrite, facts: StatusFacts): PodStatus {
  switch (what) {
    case "starting":
      return startingStatus(pod, facts);
    case "running":
      return runningStatus(pod, facts);
    case "ended":
      return endedStatus(pod, facts);
    case "rejected":
      return { ...endedStatus(pod, facts), phase: "Failed", ...because(OVER_LIMIT), message };
    default:
      return unreachable(what);
  }
}

/** Volumes are awaited. What an earlier process had started is gone with it, and counts as one restart. */
function startingStatus(pod: Pod, facts: StatusFacts): PodStatus {
  const { phase } = pod.status ?? {};
  const state: ContainerState = { waiting: { reason: CREATING } };
  return {
    phase: phase === "Running" ? phase : "Pending",
    ...addresses(pod, facts),
    ...containersOf(pod, {
      main: (before) => ({ ...restarted(before, facts), state, ready: false, started: false }),
      init: (before) => ({ ...restarted(before, facts), state, ready: false, started: false }),
    }),
    conditions: withConditions(pod, facts, [
      ["PodReadyToStartContainers", "False"],
      ["Initialized", initContainersOf(pod).length === 0 ? "True" : "False", NOT_INITIALIZED],
      ["Ready", "False", NOT_READY],
      ["ContainersReady", "False", NOT_READY],
    ]),
  };
}

function runningStatus(pod: Pod, facts: StatusFacts): PodStatus {
  const startedAt = formatTime(facts.now);
  const running = (before: ContainerStatus): ContainerStatus => ({
    ...before,
    state: { running: { startedAt } },
    ready: true,
    started: true,
    containerID: containerId(pod, before),
  });
  const completed = (before: ContainerStatus, container: Container): ContainerStatus =>
    container.restartPolicy === "Always"
      ? running(before)
      : {
          ...before,
          state: { terminated: { ...DONE, startedAt, finishedAt: startedAt } },
          ready: true,
          started: false,
          containerID: containerId(pod, before),
        };
  return {
    phase: "Running",
    ...addresses(pod, facts),
    podIP: facts.hostIP,
    podIPs: [{ ip: facts.hostIP }],
    ...containersOf(pod, { main: running, init: completed }),
    conditions: withConditions(pod, facts, [
      ["PodReadyToStartContainers", "True"],
      ["Initialized", "True"],
      ["Ready", "True"],
      ["ContainersReady", "True"],
    ]),
  };
}

/** Nothing runs any more, so volumes may go. */
function endedStatus(pod: Pod, facts: StatusFacts): PodStatus {
  const { status } = pod;
  const finishedAt = formatTime(facts.now);
  const ended = (before: ContainerStatus): ContainerStatus => {
    if (before.state?.terminated) return before;
    const startedAt = before.state?.running?.startedAt;
    const outcome = startedAt === undefined ? NEVER_STARTED : { ...DONE, startedAt };
    return { ...before, state: { terminated: { ...outcome, finishedAt } }, ready: false, started: false };
  };
  return {
    ...containersOf(pod, { main: ended, init: ended }),
    ...(status?.ephemeralContainerStatuses && {
      ephemeralContainerStatuses: status.ephemeralContainerStatuses.map(ended),
    }),
    conditions: withConditions(pod, facts, [
      ["PodReadyToStartContainers", "False"],
      ["Ready", "False", COMPLETED],
      ["ContainersReady", "False", COMPLETED],
    ]),
  };
}

const CREATING = "ContainerCreating";
const NOT_READY = "ContainersNotReady";
const NOT_INITIALIZED = "ContainersNotInitialized";
const COMPLETED = "PodCompleted";
const OVER_LIMIT = "VolumeAttachmentLimitExceeded";
const DONE = { exitCode: 0, ...because("Completed") };
/** As upstream says of a container of which it knows no outcome: 137 is what a killed process leaves. */
const UNKNOWN_OUTCOME = {
  exitCode: 137,
  ...because("ContainerStatusUnknown"),
  message: "The container could not be located when the pod was started again",
};
const NEVER_STARTED = {
  exitCode: 137,
  ...because("ContainerStatusUnknown"),
  message: "The container could not be located when the pod was terminated",
};

function because(reason: string): { readonly reason: string } {
  return { reason };
}

function addresses({ status }: Pod, { now, hostIP }: StatusFacts): PodStatus {
  return { hostIP, hostIPs: [{ ip: hostIP }], startTime: status?.startTime ?? formatTime(now) };
}

function containerId({ metadata }: Pod, { name, restartCount }: ContainerStatus): string {
  return `mooring://${metadata.uid ?? ""}/${name}/${restartCount}`;
}

/** A container that is not known to have ended may have run until its process was killed. */
function restarted(before: ContainerStatus, { now }: StatusFacts): ContainerStatus {
  const { state, restartCount, ...kept } = before;
  if (!state || state.waiting) return before;
  const finishedAt = formatTime(now);
  const terminated = state.terminated ?? {
    ...UNKNOWN_OUTCOME,
    ...(state.running?.startedAt && { startedAt: state.running.startedAt }),
    finishedAt,
  };
  return { ...kept, restartCount: restartCount + 1, lastState: { terminated } };
}

type Change = (before: ContainerStatus, container: Container) => ContainerStatus;

function containersOf(pod: Pod, { main, init }: { main: Change; init: Change }): PodStatus {
  const { status } = pod;
  const inits = initContainersOf(pod);
  return {
    ...(inits.length > 0 && { initContainerStatuses: changed(inits, status?.initContainerStatuses, init) }),
    containerStatuses: changed(pod.spec?.containers ?? [], status?.containerStatuses, main),
  };
}

function initContainersOf({ spec }: Pod): readonly Container[] {
  return spec?.initContainers ?? [];
}

function changed(
  containers: readonly Container[],
  statuses: readonly ContainerStatus[] = [],
  change: Change,
): ContainerStatus[] {
  return containers.map((container) => {
    const { name, image = "" } = container;
    const fresh: ContainerStatus = { name, image, imageID: "", ready: false, restartCount: 0 };
    return change({ ...(statuses.find((one) => one.name === name) ?? fresh) }, container);
  });
}

type Verdict = readonly [type: string, status: "True" | "False", reason?: string];

/** Those of others are kept, PodScheduled among them; the time of a change is that of its status. */
function withConditions(pod: Pod, { now }: StatusFacts, verdicts: readonly Verdict[]): PodCondition[] {
  const before = pod.status?.conditions ?? [];
  const ours = verdicts.map(([type, status, reason]): PodCondition => {
    const old = before.find((condition) => condition.type === type);
    const lastTransitionTime =
      old?.status === status && old.lastTransitionTime ? old.lastTransitionTime : formatTime(now);
    return { type, status, lastTransitionTime, ...(status === "False" && reason && { reason }) };
  });
  return [...before.filter(({ type }) => !verdicts.some(([ours]) => ours === type)), ...ours];
}
