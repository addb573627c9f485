import type { Node } from "../kube/api/node.ts";
import type { Pod } from "../kube/api/pod.ts";
import { objectsAt, textAt, timeAt } from "./fields.ts";

export interface Readiness {
  readonly ready: boolean;
  /** `Ready=Unknown since …` without the time: what the condition says. */
  readonly condition: string;
  readonly sinceMs: number | undefined;
}

/** A node that says nothing of itself is not ready. */
export function readinessOf(node: Node | undefined): Readiness {
  const ready = objectsAt(node, "status", "conditions").find((item) => textAt(item, "type") === "Ready");
  const status = textAt(ready, "status") || "missing";
  const reason = textAt(ready, "reason");
  return {
    ready: status === "True",
    condition: `Ready=${status}${reason ? `, ${reason}` : ""}`,
    sinceMs: timeAt(ready, "lastTransitionTime"),
  };
}

const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

/** Somebody vouches that the machine is off. */
export function isOutOfService(node: Node | undefined): boolean {
  return objectsAt(node, "spec", "taints").some((taint) => textAt(taint, "key") === OUT_OF_SERVICE);
}

/** Its volumes were mounted: containers only start after that. */
export function hasStarted(pod: Pod | undefined): boolean {
  const phase = textAt(pod, "status", "phase");
  if (phase === "Running" || phase === "Succeeded" || phase === "Failed") return true;
  const statuses = ["containerStatuses", "initContainerStatuses"].flatMap((list) =>
    objectsAt(pod, "status", list),
  );
  return statuses.some((status) => "running" in stateOf(status) || "terminated" in stateOf(status));
}

/** A container that is stopped by something else than a volume: `ImagePullBackOff`, not `ContainerCreating`. */
export function waitingContainer(pod: Pod | undefined): { name: string; message: string } | undefined {
  for (const status of objectsAt(pod, "status", "containerStatuses")) {
    const reason = textAt(status, "state", "waiting", "reason");
    if (reason === "" || reason === "ContainerCreating" || reason === "PodInitializing") continue;
    const message = textAt(status, "state", "waiting", "message");
    return { name: textAt(status, "name"), message: message ? `${reason}: ${message}` : reason };
  }
  return undefined;
}

function stateOf(status: object): object {
  const state = (status as { state?: unknown }).state;
  return typeof state === "object" && state !== null ? state : {};
}
