import type { ResourceQuota } from "kubernetes-types/core/v1.js";
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  subtractQuantities,
  type Quantity,
} from "../../kube/quantity.ts";
import type { ApiObject } from "../objects.ts";
import type { LooseObject } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { plus, type Amounts } from "./pod-resources.ts";
import { isInScope } from "./quota-scopes.ts";
import { usageOf } from "./quota-usage.ts";

export type Quota = LooseObject<ResourceQuota>;

/** One object as quotas see it; `resource` as in `deployments.apps`. */
export interface Counted {
  readonly resource: string;
  readonly object: ApiObject;
}

const NOTHING: Quantity = parseQuantity("0");

/** An object that is to be stored, perhaps in the place of another version of itself. */
export interface Wanted extends Counted {
  readonly replaced?: ApiObject;
}

/** Why it is too much, in the words of a real server; undefined if it is not. `present` has what it replaces. */
export function quotaProblem(quota: Quota, wanted: Wanted, present: Iterable<Counted>): string | undefined {
  if (!isInScope(quota, wanted.resource, wanted.object)) return undefined;
  const name = quota.metadata.name ?? "";
  // What was there before the quota stays as it is.
  const missing = wanted.replaced === undefined ? unspecified(quota, wanted) : [];
  if (missing.length > 0) return `failed quota: ${name}: must specify ${missing.join("; ")}`;
  const hard = hardOf(quota);
  const usage = growth(wanted);
  const asked = [...hard.keys()].filter((resource) => (usage.get(resource) ?? NOTHING).nanos > 0n).sort();
  if (asked.length === 0) return undefined;
  const used = usedOf(quota, present);
  const exceeded = asked.filter((resource) => {
    const total = plus(
      new Map([[resource, amount(used, resource)]]),
      new Map([[resource, amount(usage, resource)]]),
    );
    return compareQuantities(amount(total, resource), amount(hard, resource)) > 0;
  });
  if (exceeded.length === 0) return undefined;
  const list = (amounts: Amounts) =>
    exceeded.map((resource) => `${resource}=${formatQuantity(amount(amounts, resource))}`).join(",");
  return `exceeded quota: ${name}, requested: ${list(usage)}, used: ${list(used)}, limited: ${list(hard)}`;
}

/** Whether it takes more of anything than what it replaces. */
export function grows(wanted: Wanted): boolean {
  return [...growth(wanted).values()].some(({ nanos }) => nanos > 0n);
}

function growth({ resource, object, replaced }: Wanted): Amounts {
  const usage = usageOf(resource, object);
  if (replaced === undefined) return usage;
  const before = usageOf(resource, replaced);
  return new Map([...usage].map(([name, total]) => [name, subtractQuantities(total, amount(before, name))]));
}

/** What of the quota's resources is in use, each with an amount. */
export function usedOf(quota: Quota, present: Iterable<Counted>): Amounts {
  const hard = hardOf(quota);
  let used: Amounts = new Map([...hard.keys()].map((resource) => [resource, NOTHING]));
  for (const { resource, object } of present) {
    if (!isInScope(quota, resource, object)) continue;
    used = plus(used, new Map([...usageOf(resource, object)].filter(([name]) => hard.has(name))));
  }
  return used;
}

export function hardOf({ spec = {} }: Quota): Amounts {
  return new Map(
    Object.entries(spec.hard ?? {}).map(([resource, hard]) => [resource, parseQuantity(hard ?? "0")]),
  );
}

function amount(amounts: Amounts, resource: string): Quantity {
  return amounts.get(resource) ?? NOTHING;
}

/** Where a quota bounds processors or memory, a container that says nothing of it would use what nobody counts. */
function unspecified(quota: Quota, { resource, object }: Counted): string[] {
  if (resource !== "pods") return [];
  const { spec = {} } = object as PodObject;
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  return [...hardOf(quota).keys()].sort().flatMap((name) => {
    const [, side, short = ""] = /^(?:(requests|limits)\.)?(cpu|memory)$/.exec(name) ?? [];
    if (short === "") return [];
    const which = side === "limits" ? "limits" : "requests";
    const silent = containers.filter(({ resources }) => resources?.[which]?.[short] === undefined);
    return silent.length === 0
      ? []
      : [`${name} for: ${[...new Set(silent.map((one) => one.name ?? ""))].sort().join(",")}`];
  });
}
