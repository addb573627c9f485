import type { Node } from "../../kube/api/node.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { matchesNodeSelector, matchesNodeTerm } from "../../kube/node-selector.ts";
import type { NodeView, Refusal } from "./view.ts";

/** Where a pod wants to be, or a volume is: node selectors and node affinity. */

export function refuseByAffinity(pod: Pod, { node }: NodeView): Refusal | undefined {
  return isWanted(pod, node) ? undefined : MISMATCH;
}

const MISMATCH: Refusal = { text: "node(s) didn't match Pod's node affinity/selector", until: ["node"] };

/** By `nodeSelector` and what its node affinity requires. */
export function isWanted({ spec }: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  const selected = Object.entries(spec?.nodeSelector ?? {}).every(([key, value]) => labels[key] === value);
  const required = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return selected && (!required || matchesNodeSelector(required, node));
}

/** The sum of the weights of all preferences that the node meets. */
export function preferenceOf({ spec }: Pod, node: Node): number {
  const preferred = spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  return preferred.reduce(
    (sum, { weight, preference }) => (matchesNodeTerm(preference, node) ? sum + weight : sum),
    0,
  );
}
