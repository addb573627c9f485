import type { Taint, Toleration } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { NodeView, Refusal } from "./view.ts";

/** What a node keeps away, and what a pod puts up with. */

export function refuseByTaint(pod: Pod, { node }: NodeView): Refusal | undefined {
  const [untolerated] = untoleratedOf(pod, node, ["NoSchedule", "NoExecute"]);
  if (!untolerated) return undefined;
  const { key, value = "" } = untolerated;
  return { text: `node(s) had untolerated taint {${key}: ${value}}`, until: ["node"] };
}

/** How much a node would rather not have the pod. */
export function reluctanceOf(pod: Pod, node: Node): number {
  return untoleratedOf(pod, node, ["PreferNoSchedule"]).length;
}

/** As upstream's scheduler sees a cordon: a taint that a daemon may tolerate. */
export function refuseUnschedulable(pod: Pod, { node }: NodeView): Refusal | undefined {
  if (!node.spec?.unschedulable) return undefined;
  return isTolerated(pod, UNSCHEDULABLE)
    ? undefined
    : { text: "node(s) were unschedulable", until: ["node"] };
}

const UNSCHEDULABLE: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
const NOT_READY: Taint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };
const UNREACHABLE: Taint = { key: "node.kubernetes.io/unreachable", effect: "NoSchedule" };

/**
 * Those of the node, and the one its state stands for. A cluster has a controller that turns the Ready condition into
 * taints; here nobody does, and a node that does not say it is ready gets no pods.
 */
function taintsOf({ spec, status }: Node): readonly Taint[] {
  const ready = status?.conditions?.find(({ type }) => type === "Ready")?.status;
  const own = spec?.taints ?? [];
  if (ready === "True") return own;
  const implied = ready === "Unknown" ? UNREACHABLE : NOT_READY;
  const isSaid = own.some(({ key, effect }) => key === implied.key && effect === implied.effect);
  return isSaid ? own : [...own, implied];
}

function untoleratedOf(pod: Pod, node: Node, effects: readonly string[]): readonly Taint[] {
  return taintsOf(node).filter((taint) => effects.includes(taint.effect) && !isTolerated(pod, taint));
}

function isTolerated({ spec }: Pod, taint: Taint): boolean {
  return (spec?.tolerations ?? []).some((toleration) => tolerates(toleration, taint));
}

/** No key with `Exists` means every taint; no effect means every effect. */
function tolerates({ key = "", operator = "", value = "", effect = "" }: Toleration, taint: Taint): boolean {
  if (effect !== "" && effect !== taint.effect) return false;
  if (key !== "" && key !== taint.key) return false;
  if (operator === "Exists") return true;
  return (operator === "" || operator === "Equal") && key !== "" && value === (taint.value ?? "");
}
