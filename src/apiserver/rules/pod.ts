import type { PodSpec } from "kubernetes-types/core/v1.js";
import { causeIf, forbiddenField, IMMUTABLE, invalidFor, invalidValue, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { defined, withDefaults, without, type Loose } from "./loose.ts";
import { validatePodChange } from "./pod-change.ts";
import { podDefaults, type PodObject } from "./pod-defaults.ts";
import { validatePodSpec } from "./pod-spec.ts";
import { qosClassOf } from "./qos.ts";
import { subdomainProblems } from "./text-rules.ts";

export const podRules: RuleParts<PodObject> = {
  applyDefaults: podDefaults,

  prepareCreate: (pod) => ({ ...pod, status: { phase: "Pending", qosClass: qosClassOf(pod.spec ?? {}) } }),

  // Some node agents leave the class out when they refuse a pod, and old ones garbled its owners.
  prepareStatusUpdate: (pod, old) => ({
    ...pod,
    metadata: {
      ...without(pod.metadata, "ownerReferences"),
      ...defined({ ownerReferences: old.metadata.ownerReferences }),
    },
    status: withDefaults(pod.status ?? {}, defined({ qosClass: old.status?.qosClass })),
  }),

  validate: ({ metadata, spec = {} }) => [
    ...validatePodSpec("spec", spec, metadata.name ?? ""),
    ...validateTokens(spec),
  ],

  validateNew: ({ spec = {} }) => [
    ...causeIf(
      (spec.ephemeralContainers ?? []).length > 0,
      forbiddenField("spec.ephemeralContainers", "cannot be set on create"),
    ),
    ...causeIf(
      (spec.nodeName ?? "") !== "" && (spec.schedulingGates ?? []).length > 0,
      forbiddenField("spec.nodeName", "cannot be set until all schedulingGates have been cleared"),
    ),
  ],

  validateChange: validatePodChange,

  validateStatus({ status = {} }, old) {
    const { nominatedNodeName = "", qosClass } = status;
    return [
      ...(nominatedNodeName === ""
        ? []
        : invalidFor("status.nominatedNodeName", nominatedNodeName, subdomainProblems(nominatedNodeName))),
      ...(qosClass === old.status?.qosClass ? [] : [invalidValue("status.qosClass", qosClass, IMMUTABLE)]),
    ];
  },
};

/** A token says whose it is; admission gives every pod an account, but for those that a node runs by itself. */
function validateTokens({ serviceAccountName = "", volumes = [] }: Loose<PodSpec>): Cause[] {
  if (serviceAccountName !== "") return [];
  const rule = "must not be specified when serviceAccountName is not set";
  return volumes.flatMap(({ projected }, index) =>
    (projected?.sources ?? []).flatMap(({ serviceAccountToken }, at) =>
      causeIf(
        serviceAccountToken !== undefined,
        forbiddenField(`spec.volumes[${index}].projected.sources[${at}].serviceAccountToken`, rule),
      ),
    ),
  );
}
