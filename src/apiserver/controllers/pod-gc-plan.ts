import type { Node, Pod, PodCondition } from "kubernetes-types/core/v1.js";

/** Why a pod is ended though no node says that it has stopped; the words are upstream's `reason` labels. */
export type EndReason =
  /** Bound to a node that is not there, and was not for the whole quarantine. */
  | "orphaned"
  /** Being deleted on a node that is not ready, and that somebody declared shut down by its taint. */
  | "out-of-service"
  /** One of the oldest of more ended pods than are kept. */
  | "terminated";

/** How long a node must be missing before its pods are called orphaned: a Node may be deleted and made anew. */
export const QUARANTINE_MS = 40_000;
/** The default of kube-controller-manager's --terminated-pod-gc-threshold. */
export const TERMINATED_MAX = 12_500;

const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

/** `missingSinceMs` is undefined while nobody knows how long: then it is not yet. */
export function planNodePods(
  node: Node | undefined,
  { missingSinceMs, nowMs }: { readonly missingSinceMs: number | undefined; readonly nowMs: number },
):
  | { readonly kind: "end"; readonly reason: EndReason; readonly applies: (pod: Pod) => boolean }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "keep" } {
  if (node === undefined) {
    const restMs = QUARANTINE_MS - (nowMs - (missingSinceMs ?? nowMs));
    return restMs > 0
      ? { kind: "wait", ms: restMs }
      : { kind: "end", reason: "orphaned", applies: () => true };
  }
  return isOutOfService(node)
    ? { kind: "end", reason: "out-of-service", applies: isTerminating }
    : { kind: "keep" };
}

/** The taint alone is no proof: a node that says it is ready runs its pods. */
export function isOutOfService({ spec, status }: Node): boolean {
  const isReady =
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
  return !isReady && (spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE);
}

function isTerminating({ metadata }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined;
}

export function hasEnded({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

/** Of the ended pods those beyond the limit: evicted ones first, then the oldest. */
export function surplus<P extends Pod>(ended: readonly P[], max = TERMINATED_MAX): readonly P[] {
  if (ended.length <= max) return [];
  const rank = ({ metadata, status }: Pod) =>
    `${status?.reason === "Evicted" ? 0 : 1} ${metadata?.creationTimestamp ?? ""} ${metadata?.name ?? ""}`;
  return ended.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1)).slice(0, ended.length - max);
}

/** What an orphaned pod shows for those who watch it end. */
export const NODE_GONE: PodCondition = {
  type: "DisruptionTarget",
  status: "True",
  reason: "DeletionByPodGC",
  message: "PodGC: node no longer exists",
};
