import type { LimitRange, LimitRangeItem, ResourceQuota } from "kubernetes-types/core/v1.js";
import { causeIf, duplicate, IMMUTABLE, invalidValue } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { Loose, LooseObject } from "./loose.ts";
import { notNegativeAmount, sameValue } from "./quantities.ts";

/** How much a namespace may have. */

export const resourceQuotaRules: RuleParts<LooseObject<ResourceQuota>> = {
  validate: ({ spec = {} }) =>
    Object.entries(spec.hard ?? {}).flatMap(([resource, amount]) =>
      notNegativeAmount(`spec.hard[${resource}]`, amount),
    ),

  validateChange: ({ spec = {} }, { spec: old = {} }) =>
    causeIf(
      !sameValue([...(spec.scopes ?? [])].sort(), [...(old.scopes ?? [])].sort()),
      invalidValue("spec.scopes", spec.scopes, IMMUTABLE),
    ),
};

export const limitRangeRules: RuleParts<LooseObject<LimitRange>> = {
  applyDefaults: ({ spec = {}, ...range }) => ({
    ...range,
    spec: { ...spec, ...(spec.limits === undefined ? {} : { limits: spec.limits.map(itemDefaults) }) },
  }),

  validate({ spec = {} }) {
    const seen = new Set<string>();
    return (spec.limits ?? []).flatMap(({ type = "" }, index) => {
      const isRepeated = seen.has(type);
      seen.add(type);
      return causeIf(isRepeated, duplicate(`spec.limits[${index}].type`, type));
    });
  },
};

/** For containers: what is at most allowed is the default limit, and that the default request, down to the least. */
function itemDefaults(item: Loose<LimitRangeItem>): Loose<LimitRangeItem> {
  if (item.type !== "Container") return item;
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  return {
    ...item,
    ...(Object.keys(limits).length === 0 ? {} : { default: limits }),
    ...(Object.keys(requests).length === 0 ? {} : { defaultRequest: requests }),
  };
}
