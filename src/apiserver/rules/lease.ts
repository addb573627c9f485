import type { Lease } from "kubernetes-types/coordination/v1.js";
import { invalidValue, notNegative } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { LooseObject } from "./loose.ts";

export const leaseRules: RuleParts<LooseObject<Lease>> = {
  validate({ spec }) {
    const { leaseDurationSeconds, leaseTransitions } = spec ?? {};
    const field = "spec.leaseDurationSeconds";
    return [
      ...(leaseDurationSeconds === undefined || leaseDurationSeconds > 0
        ? []
        : [invalidValue(field, leaseDurationSeconds, "must be greater than 0")]),
      ...notNegative("spec.leaseTransitions", leaseTransitions),
    ];
  },
};
