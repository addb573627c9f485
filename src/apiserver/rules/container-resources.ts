import type { ResourceRequirements } from "kubernetes-types/core/v1.js";
import { causeIf, forbiddenField, invalidFor, invalidValue, required, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";
import { compareAmounts, isWholeAmount, notNegativeAmount, own } from "./quantities.ts";
import { qualifiedNameProblems } from "./text-rules.ts";

const FOR_CONTAINERS = new Set(["cpu", "memory", "ephemeral-storage"]);
/** Names without a domain that mean something, if not to a container. */
const STANDARD = new Set([
  ...FOR_CONTAINERS,
  "storage",
  "requests.cpu",
  "requests.memory",
  "requests.storage",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "pods",
  "services",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "configmaps",
  "persistentvolumeclaims",
  "services.nodeports",
  "services.loadbalancers",
]);

export function validateResources(field: string, resources: Loose<ResourceRequirements> = {}): Cause[] {
  const { limits = {}, requests = {} } = resources;
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  const isHuge = names.some(isHugePages) && !names.some((name) => name === "cpu" || name === "memory");
  return [
    ...Object.entries(limits).flatMap(([name, amount]) => resourceCauses(`${field}.limits`, name, amount)),
    ...Object.entries(requests).flatMap(([name, amount]) => [
      ...resourceCauses(`${field}.requests`, name, amount),
      ...limitCauses(field, amount, { name, limit: own(limits, name) }),
    ]),
    ...causeIf(isHuge, forbiddenField(field, "HugePages require cpu or memory")),
  ];
}

function isHugePages(name: string): boolean {
  return name.startsWith("hugepages-");
}

/** What a device plugin offers: a name with a domain that is not Kubernetes' own. */
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/") && !name.startsWith("requests.");
}

function resourceCauses(list: string, name: string, amount: string | undefined): Cause[] {
  const field = `${list}[${name}]`;
  const isWhole = !isExtended(name) || isWholeAmount(amount);
  return [
    ...invalidFor(field, name, nameProblems(name)),
    ...notNegativeAmount(field, amount),
    ...causeIf(!isWhole, invalidValue(field, amount, "must be an integer")),
  ];
}

function nameProblems(name: string): string[] {
  const problems = qualifiedNameProblems(name);
  if (name.includes("/")) {
    const isNative = name.includes("kubernetes.io/");
    return isNative || isExtended(name)
      ? problems
      : [...problems, "doesn't follow extended resource name standard"];
  }
  const isFit = FOR_CONTAINERS.has(name) || isHugePages(name);
  const isStandard = isFit || STANDARD.has(name) || problems.length > 0;
  return [
    ...problems,
    ...(isStandard ? [] : ["must be a standard resource type or fully qualified"]),
    ...(isFit ? [] : ["must be a standard resource for containers"]),
  ];
}

/** Only what a node can hand out twice may be asked for below its limit. */
function limitCauses(
  field: string,
  amount: string | undefined,
  { name, limit }: { name: string; limit: string | undefined },
): Cause[] {
  const isShared = !isHugePages(name) && (!name.includes("/") || name.includes("kubernetes.io/"));
  if (limit === undefined) {
    const rule = "Limit must be set for non overcommitable resources";
    return causeIf(!isShared, required(`${field}.limits`, rule));
  }
  const order = compareAmounts(amount, limit);
  if (!isShared) {
    const rule = `must be equal to ${name} limit of ${limit}`;
    return causeIf(order !== 0, invalidValue(`${field}.requests`, amount, rule));
  }
  const rule = `must be less than or equal to ${name} limit of ${limit}`;
  return causeIf(order > 0, invalidValue(`${field}.requests`, amount, rule));
}
