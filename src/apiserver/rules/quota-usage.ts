import type { PersistentVolumeClaim, Service } from "kubernetes-types/core/v1.js";
import { parseQuantity, type Quantity } from "../../kube/quantity.ts";
import type { ApiObject } from "../objects.ts";
import type { LooseObject } from "./loose.ts";
import type { PodObject } from "./pod-defaults.ts";
import { amountsOf, plus, podAmounts, type Amounts } from "./pod-resources.ts";

/** What one object takes of a namespace's quotas, by the names that quotas have for it. */
export function usageOf(resource: string, object: ApiObject): Amounts {
  const counted = new Map([[`count/${resource}`, times(1)]]);
  if (NAMED.has(resource)) counted.set(resource, times(1));
  if (resource === "pods") return podUsage(object, counted);
  if (resource === "services") return new Map([...counted, ...serviceUsage(object)]);
  if (resource === "persistentvolumeclaims") return new Map([...counted, ...claimUsage(object)]);
  return counted;
}

/** Counted under their own name too, and not only as `count/NAME`. */
const NAMED: ReadonlySet<string> = new Set([
  "configmaps",
  "persistentvolumeclaims",
  "pods",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "services",
]);

/** Known without a prefix as well: `cpu` is `requests.cpu`. */
const PLAIN = ["cpu", "memory", "ephemeral-storage"];

/** A pod that is over still counts as an object and uses nothing. */
function podUsage({ spec = {}, status = {} }: PodObject, counted: ReadonlyMap<string, Quantity>): Amounts {
  if (status.phase === "Succeeded" || status.phase === "Failed")
    return new Map([...counted].filter(([name]) => name !== "pods"));
  const usage = new Map(counted);
  for (const [name, amount] of plus(podAmounts(spec, "requests"), amountsOf(spec.overhead))) {
    usage.set(`requests.${name}`, amount);
    if (PLAIN.includes(name)) usage.set(name, amount);
  }
  for (const [name, amount] of podAmounts(spec, "limits"))
    if (PLAIN.includes(name)) usage.set(`limits.${name}`, amount);
  return usage;
}

function serviceUsage(object: ApiObject): Amounts {
  const { spec = {} } = object as LooseObject<Service>;
  const { ports = [], type = "ClusterIP" } = spec;
  const isBalanced = type === "LoadBalancer";
  const isAllocated = type === "NodePort" || (isBalanced && spec.allocateLoadBalancerNodePorts !== false);
  const asked = isBalanced ? ports.filter(({ nodePort = 0 }) => nodePort !== 0).length : 0;
  return new Map([
    ["services.nodeports", times(isAllocated ? ports.length : asked)],
    ["services.loadbalancers", times(isBalanced ? 1 : 0)],
  ]);
}

function claimUsage(object: ApiObject): Amounts {
  const { spec = {} } = object as LooseObject<PersistentVolumeClaim>;
  const storage = spec.resources?.requests?.["storage"];
  const usage = new Map(storage === undefined ? [] : [["requests.storage", parseQuantity(storage)]]);
  const storageClass = spec.storageClassName ?? "";
  if (storageClass === "") return usage;
  const own = `${storageClass}.storageclass.storage.k8s.io`;
  return new Map([
    ...usage,
    ...[...usage].map(([name, amount]) => [`${own}/${name}`, amount] as const),
    [`${own}/persistentvolumeclaims`, times(1)],
  ]);
}

function times(count: number): Quantity {
  return parseQuantity(String(count));
}
