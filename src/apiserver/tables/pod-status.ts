import type { ApiObject } from "../objects.ts";
import { conditionStatus, flagAt, has, listAt, numberAt, textAt } from "./fields.ts";
import { isDeleting } from "./printer.ts";

/**
 * What a pod is doing, in one word. The phase alone says too little: a pod whose container crashes over and over
 * is `Running`. So the reasons of its containers speak first, those that run before the others before them.
 */
export interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly status: string;
  readonly restarts: number;
  /** When a container last ended and was started again; undefined where none was. */
  readonly lastRestartMs: number | undefined;
}

export function summarisePod(pod: ApiObject): PodSummary {
  const sidecars = sidecarNames(pod);
  const total = listAt(pod, "spec", "containers").length + sidecars.size;
  const init = readInitContainers(pod, sidecars);
  if (init.blockedBy !== undefined && conditionStatus(pod, "Initialized") !== "True") {
    return { ready: init.ready, total, status: whileDeleting(pod, init.blockedBy), ...init.restarts };
  }
  const main = readContainers(pod, init.blockedBy ?? ownReason(pod));
  return {
    ready: init.ready + main.ready,
    total,
    status: whileDeleting(pod, main.status),
    ...addRestarts(init.sidecarRestarts, main.restarts),
  };
}

/** What the pod says of itself, before its containers are asked. */
function ownReason(pod: ApiObject): string {
  const isGated = listAt(pod, "status", "conditions").some(
    (item) => textAt(item, "type") === "PodScheduled" && textAt(item, "reason") === "SchedulingGated",
  );
  if (isGated) return "SchedulingGated";
  return textAt(pod, "status", "reason") || textAt(pod, "status", "phase");
}

/** A pod that has ended keeps saying how, even while it is being deleted. */
function whileDeleting(pod: ApiObject, status: string): string {
  if (!isDeleting(pod)) return status;
  if (textAt(pod, "status", "reason") === "NodeLost") return "Unknown";
  const phase = textAt(pod, "status", "phase");
  return phase === "Succeeded" || phase === "Failed" ? status : "Terminating";
}

interface Restarts {
  readonly restarts: number;
  readonly lastRestartMs: number | undefined;
}

const NO_RESTARTS: Restarts = { restarts: 0, lastRestartMs: undefined };

/** Init containers that keep running beside the others and count as ready or not, as those do. */
function sidecarNames(pod: ApiObject): ReadonlySet<string> {
  const containers = listAt(pod, "spec", "initContainers");
  return new Set(
    containers
      .filter((item) => textAt(item, "restartPolicy") === "Always")
      .map((item) => textAt(item, "name")),
  );
}

interface InitContainers {
  /** `Init:1/3` or the reason of the first that has neither ended well nor, being a sidecar, started. */
  readonly blockedBy: string | undefined;
  readonly ready: number;
  readonly restarts: Restarts;
  readonly sidecarRestarts: Restarts;
}

function readInitContainers(pod: ApiObject, sidecars: ReadonlySet<string>): InitContainers {
  const total = listAt(pod, "spec", "initContainers").length;
  let ready = 0;
  let restarts = NO_RESTARTS;
  let sidecarRestarts = NO_RESTARTS;
  for (const [index, container] of listAt(pod, "status", "initContainerStatuses").entries()) {
    const isSidecar = sidecars.has(textAt(container, "name"));
    restarts = addRestarts(restarts, restartsOf(container));
    if (isSidecar) sidecarRestarts = addRestarts(sidecarRestarts, restartsOf(container));
    if (numberAt(container, "state", "terminated", "exitCode") === 0) continue;
    if (!isSidecar || flagAt(container, "started") !== true) {
      return { blockedBy: initReason(container, index, total), ready, restarts, sidecarRestarts };
    }
    if (flagAt(container, "ready") === true) ready++;
  }
  return { blockedBy: undefined, ready, restarts, sidecarRestarts };
}

function initReason(container: unknown, index: number, total: number): string {
  if (has(container, "state", "terminated")) return `Init:${endedReason(container)}`;
  const waiting = textAt(container, "state", "waiting", "reason");
  return waiting === "" || waiting === "PodInitializing" ? `Init:${index}/${total}` : `Init:${waiting}`;
}

function readContainers(pod: ApiObject, fallback: string) {
  const containers = listAt(pod, "status", "containerStatuses");
  const running = containers.filter(
    (container) =>
      reasonOf(container) === undefined &&
      flagAt(container, "ready") === true &&
      has(container, "state", "running"),
  );
  const reason = containers.map(reasonOf).find((each) => each !== undefined) ?? fallback;
  // One container has done its work while another still runs: the pod has not completed.
  const isHalfDone = reason === "Completed" && running.length > 0;
  const whole = conditionStatus(pod, "Ready") === "True" ? "Running" : "NotReady";
  return {
    ready: running.length,
    status: isHalfDone ? whole : reason,
    restarts: containers.map(restartsOf).reduce(addRestarts, NO_RESTARTS),
  };
}

function reasonOf(container: unknown): string | undefined {
  const waiting = textAt(container, "state", "waiting", "reason");
  if (waiting !== "") return waiting;
  return has(container, "state", "terminated") ? endedReason(container) : undefined;
}

function endedReason(container: unknown): string {
  const signal = numberAt(container, "state", "terminated", "signal") ?? 0;
  const exitCode = numberAt(container, "state", "terminated", "exitCode") ?? 0;
  return (
    textAt(container, "state", "terminated", "reason") ||
    (signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`)
  );
}

function restartsOf(container: unknown): Restarts {
  const endedMs = Date.parse(textAt(container, "lastState", "terminated", "finishedAt"));
  return {
    restarts: numberAt(container, "restartCount") ?? 0,
    lastRestartMs: Number.isNaN(endedMs) ? undefined : endedMs,
  };
}

function addRestarts(one: Restarts, other: Restarts): Restarts {
  const lastMs = Math.max(one.lastRestartMs ?? -Infinity, other.lastRestartMs ?? -Infinity);
  return {
    restarts: one.restarts + other.restarts,
    lastRestartMs: lastMs === -Infinity ? undefined : lastMs,
  };
}
