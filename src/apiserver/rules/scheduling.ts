import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { PodTemplate } from "kubernetes-types/core/v1.js";
import type { RuntimeClass } from "kubernetes-types/node/v1.js";
import type { PriorityClass } from "kubernetes-types/scheduling/v1.js";
import {
  causeIf,
  forbiddenField,
  IMMUTABLE,
  invalidFor,
  invalidValue,
  notSupported,
  oneOf,
  required,
} from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type LooseObject } from "./loose.ts";
import { podTemplateDefaults } from "./pod-defaults.ts";
import { validatePodTemplate } from "./pod-template.ts";
import { validateLabelSelector } from "./selectors.ts";
import { labelProblems } from "./text-rules.ts";
import { validateShare } from "./workloads.ts";

/** Which pods come first, which may go, and what they run on. */

/** Above it are only the classes of the system. */
const USER_PRIORITY_MAX = 1_000_000_000;

/** What every cluster has; their values are beyond what anybody else may have. */
export const SYSTEM_PRIORITY_CLASSES: readonly LooseObject<PriorityClass>[] = [
  {
    metadata: { name: "system-node-critical" },
    value: 2_000_001_000,
    description: "For pods that a node cannot run without; they must not be moved from it.",
  },
  {
    metadata: { name: "system-cluster-critical" },
    value: 2_000_000_000,
    description: "For pods that the cluster cannot run without, on whichever node.",
  },
];

export const priorityClassRules: RuleParts<LooseObject<PriorityClass>> = {
  applyDefaults: (object) => withDefaults(object, { preemptionPolicy: "PreemptLowerPriority" }),

  validate({ metadata: { name = "" }, value = 0, preemptionPolicy }) {
    const policies = oneOf("preemptionPolicy", preemptionPolicy, ["Never", "PreemptLowerPriority"]);
    if (name.startsWith("system-")) {
      const known = SYSTEM_PRIORITY_CLASSES.find(({ metadata }) => metadata.name === name);
      const reserved = "priority class names with 'system-' prefix are reserved for system use only. error: ";
      if (known === undefined) {
        return [
          ...policies,
          forbiddenField("metadata.name", `${reserved}${name} is not a known system priority class`),
        ];
      }
      return [
        ...policies,
        ...causeIf(
          known.value !== value,
          forbiddenField("metadata.name", `${reserved}value of ${name} PriorityClass must be ${known.value}`),
        ),
      ];
    }
    return [
      ...policies,
      ...causeIf(
        value > USER_PRIORITY_MAX,
        forbiddenField("value", `maximum allowed value of a user defined priority is ${USER_PRIORITY_MAX}`),
      ),
    ];
  },

  validateChange: (object, old) => [
    ...causeIf((object.value ?? 0) !== (old.value ?? 0), invalidValue("value", object.value ?? 0, IMMUTABLE)),
    ...causeIf(
      object.preemptionPolicy !== old.preemptionPolicy,
      invalidValue("preemptionPolicy", object.preemptionPolicy, IMMUTABLE),
    ),
  ],
};

export const podDisruptionBudgetRules: RuleParts<LooseObject<PodDisruptionBudget>> = {
  validate({ spec = {} }) {
    const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy } = spec;
    return [
      ...causeIf(
        minAvailable !== undefined && maxUnavailable !== undefined,
        invalidValue("spec", spec, "minAvailable and maxUnavailable cannot be both set"),
      ),
      ...validateShare("spec.minAvailable", minAvailable),
      ...validateShare("spec.maxUnavailable", maxUnavailable),
      ...validateLabelSelector("spec.selector", selector),
      ...causeIf(
        unhealthyPodEvictionPolicy !== undefined &&
          !["AlwaysAllow", "IfHealthyBudget"].includes(unhealthyPodEvictionPolicy),
        notSupported("spec.unhealthyPodEvictionPolicy", unhealthyPodEvictionPolicy, [
          "AlwaysAllow",
          "IfHealthyBudget",
        ]),
      ),
    ];
  },
};

export const runtimeClassRules: RuleParts<LooseObject<RuntimeClass>> = {
  validate: ({ handler = "" }) =>
    handler === "" ? [required("handler")] : invalidFor("handler", handler, labelProblems(handler)),

  validateChange: (object, old) =>
    causeIf(object.handler !== old.handler, invalidValue("handler", object.handler, IMMUTABLE)),
};

export const podTemplateRules: RuleParts<LooseObject<PodTemplate>> = {
  applyDefaults: ({ template = {}, ...object }) => ({ ...object, template: podTemplateDefaults(template) }),
  validate: ({ template }) => validatePodTemplate("template", template),
};
