import type { Container, PodSpec } from "kubernetes-types/core/v1.js";
import { addQuantities, compareQuantities, parseQuantity, type Quantity } from "../../kube/quantity.ts";
import type { Loose } from "./loose.ts";
import type { ResourceList } from "./quantities.ts";

/** Amounts by name of the resource. */
export type Amounts = ReadonlyMap<string, Quantity>;

/**
 * What a pod asks for, or may use, as a whole: its containers run at once and add up, its init containers one after the
 * other beside the sidecars that were started before. What the pod says of itself counts instead of the sum.
 */
export function podAmounts(spec: Loose<PodSpec>, which: "requests" | "limits"): Amounts {
  const of = ({ resources }: Loose<Container>) => amountsOf(resources?.[which]);
  let total: Amounts = new Map();
  for (const container of spec.containers ?? []) total = plus(total, of(container));
  let sidecars: Amounts = new Map();
  let starting: Amounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = of(container);
    if ((container as { restartPolicy?: string }).restartPolicy === "Always") {
      total = plus(total, own);
      sidecars = plus(sidecars, own);
      starting = highest(starting, sidecars);
    } else starting = highest(starting, plus(own, sidecars));
  }
  const { resources } = spec as { readonly resources?: Readonly<Record<string, ResourceList | undefined>> };
  return new Map([...highest(total, starting), ...amountsOf(resources?.[which])]);
}

export function amountsOf(list: ResourceList = {}): Amounts {
  return new Map(
    Object.entries(list).flatMap(([name, amount]) =>
      amount === undefined ? [] : [[name, parseQuantity(amount)] as const],
    ),
  );
}

export function plus(a: Amounts, b: Amounts): Amounts {
  return combine(a, b, addQuantities);
}

function highest(a: Amounts, b: Amounts): Amounts {
  return combine(a, b, (one, other) => (compareQuantities(one, other) < 0 ? other : one));
}

function combine(a: Amounts, b: Amounts, join: (one: Quantity, other: Quantity) => Quantity): Amounts {
  const result = new Map(a);
  for (const [name, amount] of b) {
    const before = result.get(name);
    result.set(name, before === undefined ? amount : join(before, amount));
  }
  return result;
}
