import type { Node, NodeSpec, Taint } from "kubernetes-types/core/v1.js";
import { duplicate, forbiddenField, invalidFor, notSupported, required, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { defined, withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { notNegativeAmount, sameValue, type ResourceList } from "./quantities.ts";
import { labelValueProblems, qualifiedNameProblems } from "./text-rules.ts";

type NodeObject = LooseObject<Node>;

export const TAINT_EFFECTS: readonly string[] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export const nodeRules: RuleParts<NodeObject> = {
  statusOnCreate: "keep",

  applyDefaults({ spec, status, ...object }) {
    const capacity = status?.capacity;
    return {
      ...object,
      ...(spec === undefined ? {} : { spec: syncPodCidrs(spec) }),
      ...(status === undefined ? {} : { status: withDefaults(status, defined({ allocatable: capacity })) }),
    };
  },

  validate({ spec, status }) {
    return [
      ...validateTaints(spec?.taints),
      ...validateAmounts("status.capacity", status?.capacity),
      ...validateAmounts("status.allocatable", status?.allocatable),
    ];
  },

  validateChange({ spec }, old) {
    const [oldCidrs, oldProvider] = [old.spec?.podCIDRs ?? [], old.spec?.providerID ?? ""];
    const once = (field: string) => `node updates may not change ${field} except from "" to valid`;
    return [
      ...(oldCidrs.length === 0 || sameValue(spec?.podCIDRs, oldCidrs)
        ? []
        : [forbiddenField("spec.podCIDRs", once("podCIDR"))]),
      ...(oldProvider === "" || spec?.providerID === oldProvider
        ? []
        : [forbiddenField("spec.providerID", once("providerID"))]),
    ];
  },

  validateStatus({ status }) {
    return [
      ...validateAmounts("status.capacity", status?.capacity),
      ...validateAmounts("status.allocatable", status?.allocatable),
    ];
  },
};

/** Older clients know one CIDR, newer ones a list that begins with it; what an older one sets counts. */
function syncPodCidrs(spec: Loose<NodeSpec>): Loose<NodeSpec> {
  const { podCIDR = "", podCIDRs = [] } = spec;
  if (podCIDR === "" && podCIDRs.length === 0) return spec;
  const list = podCIDR === "" || podCIDRs[0] === podCIDR ? podCIDRs : [podCIDR];
  return { ...spec, podCIDR: list[0] ?? podCIDR, podCIDRs: list };
}

/** The real server looks for taints below metadata, where they were once. */
function validateTaints(taints: readonly Loose<Taint>[] = []): Cause[] {
  return taints.flatMap((taint, index) => {
    const field = `metadata.taints[${index}]`;
    const { key = "", value = "", effect = "" } = taint;
    const isRepeated = taints.slice(0, index).some((other) => other.key === key && other.effect === effect);
    return [
      ...invalidFor(`${field}.key`, key, qualifiedNameProblems(key)),
      ...invalidFor(`${field}.value`, value, labelValueProblems(value)),
      ...validateEffect(`${field}.effect`, effect),
      ...(isRepeated ? [duplicate(field, taint)] : []),
    ];
  });
}

function validateEffect(field: string, effect: string): Cause[] {
  if (effect === "") return [required(field)];
  return TAINT_EFFECTS.includes(effect) ? [] : [notSupported(field, effect, TAINT_EFFECTS)];
}

function validateAmounts(field: string, amounts: ResourceList = {}): Cause[] {
  return Object.entries(amounts).flatMap(([name, amount]) => notNegativeAmount(`${field}.${name}`, amount));
}
