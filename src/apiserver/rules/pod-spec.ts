import type { PodSpec, Toleration } from "kubernetes-types/core/v1.js";
import { invalidFor, invalidValue, notSupported, oneOf, required, type Cause } from "./causes.ts";
import { validateContainers } from "./containers.ts";
import type { Loose } from "./loose.ts";
import { validateLabels } from "./metadata.ts";
import { TAINT_EFFECTS } from "./node.ts";
import { validateVolumes } from "./pod-volumes.ts";
import { labelProblems, labelValueProblems, qualifiedNameProblems, subdomainProblems } from "./text-rules.ts";

const INT32_MAX = 2 ** 31 - 1;
const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const DNS_POLICIES = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];

export function validatePodSpec(field: string, spec: Loose<PodSpec>): Cause[] {
  const { containers = [], initContainers = [], ephemeralContainers = [], volumes = [] } = spec;
  const names = containers.map(({ name = "" }) => name);
  const initNames = initContainers.map(({ name = "" }) => name);
  return [
    ...validateVolumes(`${field}.volumes`, volumes),
    ...(containers.length === 0
      ? [required(`${field}.containers`)]
      : validateContainers(`${field}.containers`, containers, { volumes })),
    ...validateContainers(`${field}.initContainers`, initContainers, { volumes, taken: names }),
    ...validateContainers(`${field}.ephemeralContainers`, ephemeralContainers, {
      volumes,
      taken: [...names, ...initNames],
    }),
    ...oneOf(`${field}.restartPolicy`, spec.restartPolicy, RESTART_POLICIES),
    ...oneOf(`${field}.dnsPolicy`, spec.dnsPolicy, DNS_POLICIES),
    ...validateLabels(`${field}.nodeSelector`, spec.nodeSelector),
    ...validatePlacement(field, spec),
    ...validateTolerations(`${field}.tolerations`, spec.tolerations),
    ...oneOf(`${field}.preemptionPolicy`, spec.preemptionPolicy, ["Never", "PreemptLowerPriority"]),
  ];
}

function validatePlacement(field: string, spec: Loose<PodSpec>): Cause[] {
  const { serviceAccountName = "", nodeName = "", hostname = "", subdomain = "" } = spec;
  return [
    ...nameCauses(`${field}.serviceAccountName`, serviceAccountName, subdomainProblems),
    ...nameCauses(`${field}.nodeName`, nodeName, subdomainProblems),
    ...validateDeadline(`${field}.activeDeadlineSeconds`, spec.activeDeadlineSeconds),
    ...nameCauses(`${field}.hostname`, hostname, labelProblems),
    ...nameCauses(`${field}.subdomain`, subdomain, labelProblems),
  ];
}

function nameCauses(field: string, name: string, problems: (name: string) => string[]): Cause[] {
  return name === "" ? [] : invalidFor(field, name, problems(name));
}

function validateDeadline(field: string, seconds: number | undefined): Cause[] {
  if (seconds === undefined || (seconds >= 1 && seconds <= INT32_MAX)) return [];
  return [invalidValue(field, seconds, `must be between 1 and ${INT32_MAX}, inclusive`)];
}

export function validateTolerations(field: string, tolerations: readonly Loose<Toleration>[] = []): Cause[] {
  return tolerations.flatMap((toleration, index) => {
    const { key = "", operator = "Equal", value = "", effect = "", tolerationSeconds } = toleration;
    const path = `${field}[${index}]`;
    return [
      ...nameCauses(`${path}.key`, key, qualifiedNameProblems),
      ...(key === "" && operator !== "Exists"
        ? [
            invalidValue(
              `${path}.operator`,
              operator,
              'operator must be Exists when `key` is empty, which means "match all values and all keys"',
            ),
          ]
        : []),
      ...(tolerationSeconds !== undefined && effect !== "NoExecute"
        ? [
            invalidValue(
              `${path}.effect`,
              effect,
              "effect must be 'NoExecute' when `tolerationSeconds` is set",
            ),
          ]
        : []),
      ...validateOperator(path, operator, value),
      ...(effect === "" ? [] : oneOf(`${path}.effect`, effect, TAINT_EFFECTS)),
    ];
  });
}

function validateOperator(path: string, operator: string, value: string): Cause[] {
  switch (operator) {
    case "Equal":
      return invalidFor(`${path}.operator`, value, labelValueProblems(value));
    case "Exists":
      if (value === "") return [];
      return [invalidValue(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'")];
    default:
      return [notSupported(`${path}.operator`, operator, ["Equal", "Exists"])];
  }
}
