import type { PodCondition } from "kubernetes-types/core/v1.js";
import { toTimestamp } from "../objects.ts";
import type { Loose } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";

/** One condition of a type, in its place; the time of its last change is kept while its status stays. */
export function withCondition(pod: PodObject, condition: Loose<PodCondition>, now: Date): PodObject {
  const conditions = pod.status?.conditions ?? [];
  const before = conditions.find(({ type }) => type === condition.type);
  const changedAt = before?.status === condition.status ? before?.lastTransitionTime : undefined;
  const next = { ...condition, lastTransitionTime: changedAt ?? toTimestamp(now) };
  const list =
    before === undefined ? [...conditions, next] : conditions.map((one) => (one === before ? next : one));
  return { ...pod, status: { ...pod.status, conditions: list } };
}
