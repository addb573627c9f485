import type { Eviction } from "kubernetes-types/policy/v1.js";
import type { DeleteOptions } from "../delete-options.ts";
import { planDeletion, type Deletion } from "../deletion.ts";
import { badRequest } from "../errors.ts";
import { pods } from "../kinds.ts";
import type { LooseObject } from "./loose.ts";
import { withCondition } from "./pod-conditions.ts";
import type { PodObject } from "./pod-defaults.ts";
import { sameValue } from "./quantities.ts";

/** What is wrong with an Eviction sent to the pod `name`; throws the answer. */
export function checkEviction(eviction: LooseObject<Eviction>, name: string): void {
  if ((eviction.metadata.name ?? "") === name) return;
  throw badRequest("name in URL does not match name in Eviction object");
}

/**
 * An eviction is a graceful DELETE that says why: the pod is marked as evicted before it goes. Whether its disruption
 * budget lets it go is asked before, in `disruption.ts`. `options` are the Eviction's `deleteOptions`.
 */
export function evictPod(pod: PodObject, options: DeleteOptions, now: Date): Deletion {
  const marked = withCondition(pod, EVICTED, now);
  const plan = planDeletion(pods, marked, options, now);
  return plan.kind !== "nothing" || sameValue(marked, pod) ? plan : { kind: "mark", next: marked };
}

const EVICTED = {
  type: "DisruptionTarget",
  status: "True",
  reason: "EvictionByEvictionAPI",
  message: "Eviction API: evicting",
};
