import type { Container, PodSpec } from "kubernetes-types/core/v1.js";
import { addQuantities, compareQuantities, parseQuantity, type Quantity } from "../../kube/quantity.ts";
import type { Loose } from "./loose.ts";
import type { ResourceList } from "./quantities.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/** Only these decide who is killed first when a node runs short. */
const COUNTED = ["cpu", "memory"] as const;

/**
 * BestEffort asks for nothing; Guaranteed says for every container how much it may use and asks for
 * just that; all else is Burstable. Amounts of zero are as good as none.
 */
export function qosClassOf({ containers = [], initContainers = [] }: Loose<PodSpec>): QosClass {
  const all = [...containers, ...initContainers];
  const requests = totalOf(all, ({ resources }) => resources?.requests);
  const limits = totalOf(all, ({ resources }) => resources?.limits);
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const limited = all.every(({ resources }) =>
    COUNTED.every((name) => isPositive(resources?.limits?.[name])),
  );
  const equal = COUNTED.every((name) => {
    const [request, limit] = [requests.get(name), limits.get(name)];
    return request !== undefined && limit !== undefined && compareQuantities(request, limit) === 0;
  });
  return limited && equal ? "Guaranteed" : "Burstable";
}

function totalOf(
  containers: readonly Loose<Container>[],
  pick: (container: Loose<Container>) => ResourceList | undefined,
): ReadonlyMap<string, Quantity> {
  const total = new Map<string, Quantity>();
  for (const container of containers) {
    for (const name of COUNTED) {
      const amount = pick(container)?.[name];
      if (amount === undefined || !isPositive(amount)) continue;
      const [sum, quantity] = [total.get(name), parseQuantity(amount)];
      total.set(name, sum === undefined ? quantity : addQuantities(sum, quantity));
    }
  }
  return total;
}

function isPositive(amount: string | undefined): boolean {
  return amount !== undefined && parseQuantity(amount).nanos > 0n;
}
