import type { ContainerStatus } from "kubernetes-types/core/v1.js";
import type { Pod } from "../../kube/api/pod.ts";

/**
 * What the starter does next with a pod of its node, from the pod as the server has it and what this process has seen of
 * its volumes. One step at a time: what a step changes comes back as an event and is planned again, so a process that is
 * killed after any request goes on from what the server says.
 */
export type PodStep =
  | { readonly kind: "nothing" }
  | StatusWrite
  | { readonly kind: "wait"; readonly until: "mounted" | "unmounted" }
  | { readonly kind: "delete" };

export interface StatusWrite {
  readonly kind: "write";
  /**
   * `starting`: containers are announced, or those of an earlier process are declared gone. `rejected`: the node cannot take
   * the pod's volumes, now or later.
   */
  readonly what: "starting" | "running" | "ended" | "rejected";
  /** Why it is rejected. */
  readonly message?: string;
}

/** What this process knows of a pod's volumes; nothing of it outlives the process. */
export interface Known {
  readonly mounted: boolean;
  readonly unmounted: boolean;
  /** Why the node refused the pod for good. */
  readonly rejected?: string | undefined;
}

const NOTHING: PodStep = { kind: "nothing" };

export function planPod(pod: Pod, known: Known): PodStep {
  if (pod.metadata.annotations?.[MIRROR] !== undefined) return NOTHING;
  if (pod.metadata.deletionTimestamp) return planEnd(pod, known);
  // Evicted, or failed by somebody: it stays for people to read, and its volumes go by its phase alone.
  if (hasEnded(pod)) return someRun(pod) ? { kind: "write", what: "ended" } : NOTHING;
  if (known.rejected !== undefined) return { kind: "write", what: "rejected", message: known.rejected };
  if (known.mounted) return allRun(pod) ? NOTHING : { kind: "write", what: "running" };
  return allWait(pod) ? { kind: "wait", until: "mounted" } : { kind: "write", what: "starting" };
}

/** A pod of a static file of some node; this node has no such files. */
const MIRROR = "kubernetes.io/config.mirror";

/**
 * Containers are said to be over first, then volumes go, then the object: each allows the next. Its phase stays: the server
 * removes a pod whose phase says that it has ended at the next DELETE of anybody, mounted or not.
 */
function planEnd(pod: Pod, { unmounted }: Known): PodStep {
  if (someRun(pod)) return { kind: "write", what: "ended" };
  if (!unmounted) return { kind: "wait", until: "unmounted" };
  return isHeld(pod) ? NOTHING : { kind: "delete" };
}

/** Deleted as far as a node can: whoever owns a finalizer does the rest. */
function isHeld({ metadata }: Pod): boolean {
  return metadata.deletionGracePeriodSeconds === 0 && (metadata.finalizers ?? []).length > 0;
}

function hasEnded({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

function someRun({ status }: Pod): boolean {
  const all = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  return all.some(({ state }) => !state?.terminated && !state?.waiting);
}

function allRun(pod: Pod): boolean {
  return pod.status?.phase === "Running" && everyContainer(pod, ({ state }) => Boolean(state?.running));
}

function allWait(pod: Pod): boolean {
  return everyContainer(pod, ({ state }) => Boolean(state?.waiting));
}

function everyContainer({ spec, status }: Pod, holds: (status: ContainerStatus) => boolean): boolean {
  const statuses = status?.containerStatuses ?? [];
  return (spec?.containers ?? []).every(({ name }) => {
    const found = statuses.find((one) => one.name === name);
    return found !== undefined && holds(found);
  });
}
