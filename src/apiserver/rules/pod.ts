import { IMMUTABLE, invalidFor, invalidValue } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { defined, withDefaults, without } from "./loose.ts";
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

  validate: ({ spec = {} }) => validatePodSpec("spec", spec),

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
