import type { Node } from "../kube/api/node.ts";
import type { Pod } from "../kube/api/pod.ts";
import { field, objectsAt, textAt } from "./fields.ts";
import { matchesNodeAffinity } from "./node-terms.ts";
import { isObject } from "../volumes/untrusted.ts";

/*
 * Where a pod may be by what it says itself: its selector, its affinity and the taints it tolerates. Whether there is room, and
 * whether other pods are near, is for the scheduler to say.
 */

/** A cordon is no reason here: it is what the caller asks about. */
const CORDON = "node.kubernetes.io/unschedulable";

/** By its selector and its affinity alone. */
export function selects(pod: Pod, node: Node): boolean {
  return matchesSelector(pod, node) && matchesAffinity(pod, node);
}

function matchesSelector(pod: Pod, node: Node): boolean {
  const selector = field(pod, "spec", "nodeSelector");
  if (!isObject(selector)) return true;
  return Object.entries(selector).every(([key, value]) => field(node, "metadata", "labels", key) === value);
}

function matchesAffinity(pod: Pod, node: Node): boolean {
  const required = [
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
  ] as const;
  if (!isObject(field(pod, ...required))) return true;
  return matchesNodeAffinity(node, objectsAt(pod, ...required, "nodeSelectorTerms"));
}

/** Taints that keep the pod away. */
export function untolerated(pod: Pod, node: Node): readonly object[] {
  const tolerations = objectsAt(pod, "spec", "tolerations");
  return objectsAt(node, "spec", "taints")
    .filter((taint) => ["NoSchedule", "NoExecute"].includes(textAt(taint, "effect")))
    .filter((taint) => textAt(taint, "key") !== CORDON)
    .filter((taint) => !tolerations.some((toleration) => tolerates(toleration, taint)));
}

/** No key with `Exists` means every taint; no effect means every effect. */
function tolerates(toleration: object, taint: object): boolean {
  const of = (name: string) => textAt(toleration, name);
  if (of("effect") !== "" && of("effect") !== textAt(taint, "effect")) return false;
  if (of("key") !== "" && of("key") !== textAt(taint, "key")) return false;
  if (of("operator") === "Exists") return true;
  return ["", "Equal"].includes(of("operator")) && of("key") !== "" && of("value") === textAt(taint, "value");
}
