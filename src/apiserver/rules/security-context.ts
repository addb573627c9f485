import type { PodSpec, SecurityContext } from "kubernetes-types/core/v1.js";
import { causeIf, inRange, invalidValue, oneOf, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";
import { validateSysctls } from "./sysctls.ts";

/** Of users and groups. */
const IDS = { min: 0, max: 2 ** 31 - 1 };

export function validatePodSecurity(field: string, spec: Loose<PodSpec>): Cause[] {
  const { securityContext = {}, hostPID = false, shareProcessNamespace = false } = spec;
  const path = `${field}.securityContext`;
  const { supplementalGroups = [] } = securityContext;
  return [
    ...inRange(`${path}.fsGroup`, securityContext.fsGroup, IDS),
    ...inRange(`${path}.runAsUser`, securityContext.runAsUser, IDS),
    ...inRange(`${path}.runAsGroup`, securityContext.runAsGroup, IDS),
    ...supplementalGroups.flatMap((group, index) =>
      inRange(`${path}.supplementalGroups[${index}]`, group, IDS),
    ),
    ...causeIf(
      hostPID && shareProcessNamespace,
      invalidValue(
        `${path}.shareProcessNamespace`,
        true,
        "ShareProcessNamespace and HostPID cannot both be enabled",
      ),
    ),
    ...oneOf(`${path}.fsGroupChangePolicy`, securityContext.fsGroupChangePolicy, [
      "Always",
      "OnRootMismatch",
    ]),
    ...validateSysctls(`${path}.sysctls`, spec),
  ];
}

export function validateContainerSecurity(field: string, context: Loose<SecurityContext> = {}): Cause[] {
  const { runAsUser, runAsGroup, privileged = false, allowPrivilegeEscalation = true } = context;
  const isAdmin = context.capabilities?.add?.includes("SYS_ADMIN") ?? false;
  const no = "cannot set `allowPrivilegeEscalation` to false and";
  return [
    ...inRange(`${field}.runAsUser`, runAsUser, IDS),
    ...inRange(`${field}.runAsGroup`, runAsGroup, IDS),
    ...causeIf(
      !allowPrivilegeEscalation && privileged,
      invalidValue(field, context, `${no} \`privileged\` to true`),
    ),
    ...causeIf(
      !allowPrivilegeEscalation && isAdmin,
      invalidValue(field, context, `${no} \`capabilities.Add\` CAP_SYS_ADMIN`),
    ),
  ];
}
