import type { HostAlias, PodDNSConfig, PodSpec, Toleration } from "kubernetes-types/core/v1.js";
import { validateAffinity, validateSpread } from "./affinity.ts";
import {
  causeIf,
  duplicate,
  inRange,
  invalidFor,
  invalidValue,
  notSupported,
  oneOf,
  required,
  type Cause,
} from "./causes.ts";
import { validateHostNetworkPorts } from "./container-ports.ts";
import { validateContainers, validateEphemeralContainers, validateInitContainers } from "./containers.ts";
import type { Loose } from "./loose.ts";
import { validateLabels } from "./metadata.ts";
import { TAINT_EFFECTS } from "./node.ts";
import { checkVolumes } from "./pod-volumes.ts";
import { validatePodSecurity } from "./security-context.ts";
import {
  ipProblems,
  labelProblems,
  labelValueProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "./text-rules.ts";

const SECONDS = { min: 1, max: 2 ** 31 - 1 };
const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const DNS_POLICIES = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

/** `podName` may be empty where there is none yet. */
export function validatePodSpec(field: string, spec: Loose<PodSpec>, podName: string): Cause[] {
  const { containers = [], initContainers = [], ephemeralContainers = [], volumes = [] } = spec;
  const { causes, good } = checkVolumes(`${field}.volumes`, volumes, podName);
  const around = { volumes: good, graceSeconds: spec.terminationGracePeriodSeconds ?? 0 };
  const names = containers.map(({ name = "" }) => name);
  const allNames = [...names, ...initContainers.map(({ name = "" }) => name)];
  return [
    ...causes,
    ...(containers.length === 0
      ? [required(`${field}.containers`)]
      : validateContainers(`${field}.containers`, containers, { ...around, taken: [] })),
    ...validateInitContainers(`${field}.initContainers`, initContainers, { ...around, taken: names }),
    ...validateEphemeralContainers(`${field}.ephemeralContainers`, ephemeralContainers, {
      ...around,
      taken: allNames,
    }),
    ...(spec.hostNetwork === true ? validateHostNetworkPorts(`${field}.containers`, containers) : []),
    ...oneOf(`${field}.restartPolicy`, spec.restartPolicy, RESTART_POLICIES),
    ...oneOf(`${field}.dnsPolicy`, spec.dnsPolicy, DNS_POLICIES),
    ...validateLabels(`${field}.nodeSelector`, spec.nodeSelector),
    ...validatePodSecurity(field, spec),
    ...validateAffinity(`${field}.affinity`, spec.affinity),
    ...validateDns(`${field}.dnsConfig`, spec.dnsConfig, spec.dnsPolicy),
    ...validateGates(field, spec),
    ...validateSpread(`${field}.topologySpreadConstraints`, spec.topologySpreadConstraints),
    ...validatePlacement(field, spec),
    ...validateTolerations(`${field}.tolerations`, spec.tolerations),
    ...validateHostAliases(`${field}.hostAliases`, spec.hostAliases),
    ...oneOf(`${field}.preemptionPolicy`, spec.preemptionPolicy, ["PreemptLowerPriority", "Never"]),
  ];
}

function validatePlacement(field: string, spec: Loose<PodSpec>): Cause[] {
  const { serviceAccountName = "", nodeName = "", hostname = "", subdomain = "" } = spec;
  const { priorityClassName = "", runtimeClassName = "" } = spec;
  return [
    ...nameCauses(`${field}.serviceAccountName`, serviceAccountName, subdomainProblems),
    ...nameCauses(`${field}.nodeName`, nodeName, subdomainProblems),
    ...inRange(`${field}.activeDeadlineSeconds`, spec.activeDeadlineSeconds, SECONDS),
    ...nameCauses(`${field}.hostname`, hostname, labelProblems),
    ...nameCauses(`${field}.subdomain`, subdomain, labelProblems),
    ...nameCauses(`${field}.priorityClassName`, priorityClassName, subdomainProblems),
    ...nameCauses(`${field}.runtimeClassName`, runtimeClassName, subdomainProblems),
  ];
}

/** What the C library of a container can make use of. */
const NAMESERVERS_MAX = 3;
const SEARCHES_MAX = 32;

function validateDns(
  field: string,
  config: Loose<PodDNSConfig> | undefined,
  policy: string | undefined,
): Cause[] {
  const { nameservers = [], searches = [], options = [] } = config ?? {};
  if (policy === "None" && config === undefined) {
    return [required(field, "must provide `dnsConfig` when `dnsPolicy` is None")];
  }
  if (policy === "None" && nameservers.length === 0) {
    const rule = "must provide at least one DNS nameserver when `dnsPolicy` is None";
    return [required(`${field}.nameservers`, rule)];
  }
  return [
    ...causeIf(
      nameservers.length > NAMESERVERS_MAX,
      invalidValue(
        `${field}.nameservers`,
        nameservers,
        `must not have more than ${NAMESERVERS_MAX} nameservers`,
      ),
    ),
    ...nameservers.flatMap((ip, index) => invalidFor(`${field}.nameservers[${index}]`, ip, ipProblems(ip))),
    ...causeIf(
      searches.length > SEARCHES_MAX,
      invalidValue(`${field}.searches`, searches, `must not have more than ${SEARCHES_MAX} search paths`),
    ),
    ...searches.flatMap((search, index) => {
      const name = search.replace(/\.$/, "");
      return invalidFor(`${field}.searches[${index}]`, name, subdomainProblems(name));
    }),
    ...options.flatMap(({ name = "" }, index) =>
      causeIf(name === "", required(`${field}.options[${index}]`, "must not be empty")),
    ),
  ];
}

function validateGates(
  field: string,
  { readinessGates = [], schedulingGates = [] }: Loose<PodSpec>,
): Cause[] {
  const names = schedulingGates.map(({ name = "" }) => name);
  return [
    ...readinessGates.flatMap(({ conditionType = "" }, index) =>
      invalidFor(
        `${field}.readinessGates[${index}].conditionType`,
        conditionType,
        qualifiedNameProblems(conditionType),
      ),
    ),
    ...names.flatMap((name, index) => [
      ...invalidFor(`${field}.schedulingGates[${index}]`, name, qualifiedNameProblems(name)),
      ...causeIf(names.indexOf(name) < index, duplicate(`${field}.schedulingGates[${index}]`, name)),
    ]),
  ];
}

function validateHostAliases(field: string, aliases: readonly Loose<HostAlias>[] = []): Cause[] {
  return aliases.flatMap(({ ip = "", hostnames = [] }, index) => [
    ...invalidFor(`${field}[${index}].ip`, ip, ipProblems(ip)),
    ...hostnames.flatMap((name, at) =>
      invalidFor(`${field}[${index}].hostnames[${at}]`, name, subdomainProblems(name)),
    ),
  ]);
}

function nameCauses(field: string, name: string, problems: (name: string) => string[]): Cause[] {
  return name === "" ? [] : invalidFor(field, name, problems(name));
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
