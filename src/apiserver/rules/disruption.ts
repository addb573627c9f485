import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { fromLabelSelectorObject, matchesLabels } from "../../kube/selectors.ts";
import { forbidden, StatusError } from "../errors.ts";
import { toTimestamp } from "../objects.ts";
import type { Resource } from "../../kube/object.ts";
import type { LooseObject } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";

export type Budget = LooseObject<PodDisruptionBudget>;

/** Evictions that were let through and that nobody has counted yet. */
const UNCOUNTED_MAX = 2_000;

/**
 * What an eviction costs: nothing where no budget guards the pod or the pod serves nobody, one disruption of the
 * budget otherwise.
 */
export type Cost = { readonly kind: "free" } | { readonly kind: "charge"; readonly budget: string };

export function costOfEviction(pod: PodObject, budgets: readonly Budget[]): Cost {
  const { status = {}, metadata } = pod;
  const isOver = status.phase === "Succeeded" || status.phase === "Failed" || status.phase === "Pending";
  if (isOver || metadata.deletionTimestamp !== undefined) return { kind: "free" };
  const [budget, second] = budgets.filter((candidate) => guards(candidate, pod));
  if (second !== undefined)
    throw new StatusError(
      500,
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
    );
  if (budget === undefined) return { kind: "free" };
  const isReady = status.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false;
  return isReady || !mayGoUnready(budget)
    ? { kind: "charge", budget: budget.metadata.name ?? "" }
    : { kind: "free" };
}

/** A pod that is not ready counts for nobody, as long as the others are enough. */
function mayGoUnready({ spec = {}, status = {} }: Budget): boolean {
  const { unhealthyPodEvictionPolicy } = spec as { readonly unhealthyPodEvictionPolicy?: string };
  if (unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

function guards({ spec = {}, metadata }: Budget, pod: PodObject): boolean {
  if (metadata.namespace !== pod.metadata.namespace || spec.selector === undefined) return false;
  const selector = fromLabelSelectorObject(spec.selector as Parameters<typeof fromLabelSelectorObject>[0]);
  return matchesLabels(selector, pod.metadata.labels ?? {});
}

/** The budget after one more eviction; throws the answer when it allows none. */
export function charge(kind: Resource, budget: Budget, pod: string, now: Date): Budget {
  const { metadata, status = {} } = budget;
  const name = metadata.name ?? "";
  const { disruptionsAllowed = 0, disruptedPods = {} } = status;
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0))
    throw tooMany(`The disruption budget ${name} is still being processed by the server.`, 10);
  if (disruptionsAllowed < 0) throw forbidden(kind, name, "pdb disruptions allowed is negative");
  if (Object.keys(disruptedPods).length > UNCOUNTED_MAX)
    throw forbidden(
      kind,
      name,
      "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
    );
  if (disruptionsAllowed === 0) throw tooMany(whyNone(budget), 0);
  return {
    ...budget,
    status: {
      ...status,
      disruptionsAllowed: disruptionsAllowed - 1,
      disruptedPods: { ...disruptedPods, [pod]: toTimestamp(now) },
    },
  };
}

function whyNone({ metadata, status = {} }: Budget): string {
  const budget = `The disruption budget ${metadata.name ?? ""}`;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  return currentHealthy <= desiredHealthy
    ? `${budget} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`
    : `${budget} does not allow evicting pods currently`;
}

/** Clients ask again: a budget allows more once other pods are healthy. */
function tooMany(message: string, retryAfterSeconds: number): StatusError {
  return new StatusError(429, "Cannot evict pod as it would violate the pod's disruption budget.", {
    details: {
      causes: [{ reason: "DisruptionBudget", message }],
      ...(retryAfterSeconds === 0 ? {} : { retryAfterSeconds }),
    },
    ...(retryAfterSeconds === 0 ? {} : { headers: { "retry-after": String(retryAfterSeconds) } }),
  });
}
