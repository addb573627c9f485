import type { Pod } from "../../kube/api/pod.ts";
import { preferenceOf } from "./node-affinity.ts";
import { reluctanceOf } from "./taints.ts";
import type { NodeView } from "./view.ts";

/**
 * The best of the nodes that would do: the one least reluctant, then the one most preferred, then the one with the fewest
 * pods, then by name. An order and no sum of weights: why a node was chosen can be said in a sentence.
 */
export function bestNode<T extends { readonly nodeView: NodeView }>(
  pod: Pod,
  possible: readonly T[],
): T | undefined {
  let best: { readonly one: T; readonly rank: Rank } | undefined;
  for (const one of possible) {
    const rank = rankOf(pod, one.nodeView);
    if (!best || isBefore(rank, best.rank)) best = { one, rank };
  }
  return best?.one;
}

type Rank = readonly [reluctance: number, dislike: number, pods: number, name: string];

function rankOf(pod: Pod, { node, pods, name }: NodeView): Rank {
  return [reluctanceOf(pod, node), -preferenceOf(pod, node), pods.length, name];
}

function isBefore(a: Rank, b: Rank): boolean {
  for (let index = 0; index < a.length; index++) {
    const [x, y] = [a[index] ?? 0, b[index] ?? 0];
    if (x !== y) return x < y;
  }
  return false;
}
