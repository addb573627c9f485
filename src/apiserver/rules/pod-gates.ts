import type { NodeAffinity, NodeSelectorTerm, PodSpec } from "kubernetes-types/core/v1.js";
import { forbiddenField, invalidValue, type Cause } from "./causes.ts";
import { defined, without, type Loose } from "./loose.ts";
import { own, sameValue } from "./quantities.ts";

/**
 * A pod is made with its gates, and loses them one by one. While it has any, no scheduler has looked at it, so where it may
 * run can still change: as long as every node that fits afterwards would have fitted before. What decides is whether
 * the stored pod has gates: one write may narrow the choice and open the last gate.
 */
type Spec = Loose<PodSpec>;
type Term = Loose<NodeSelectorTerm>;

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

export function validateGateChange(spec: Spec, old: Spec): Cause[] {
  return [
    ...validateOnlyRemoved(spec, old),
    ...(isGated(old)
      ? [...validateSelector(spec, old), ...validateNodeAffinity(nodeAffinityOf(spec), nodeAffinityOf(old))]
      : []),
  ];
}

/** The wanted spec with gates, and what they let change, as they were. */
export function withGatesOf(spec: Spec, old: Spec): Spec {
  const { schedulingGates, nodeSelector } = old;
  const gates = { ...without(spec, "schedulingGates"), ...defined({ schedulingGates }) };
  if (!isGated(old)) return gates;
  const affinity = {
    ...without(spec.affinity ?? {}, "nodeAffinity"),
    ...defined({ nodeAffinity: nodeAffinityOf(old) }),
  };
  return { ...without(gates, "nodeSelector"), ...defined({ nodeSelector }), affinity };
}

function isGated({ schedulingGates = [] }: Spec): boolean {
  return schedulingGates.length > 0;
}

function nodeAffinityOf({ affinity }: Spec): Loose<NodeAffinity> | undefined {
  return affinity?.nodeAffinity;
}

function validateOnlyRemoved({ schedulingGates = [] }: Spec, { schedulingGates: old = [] }: Spec): Cause[] {
  const known = new Set(old.map(({ name }) => name));
  return schedulingGates.flatMap(({ name = "" }, index) => {
    if (known.has(name)) return [];
    const rule = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return [forbiddenField(`spec.schedulingGates[${index}].name`, rule)];
  });
}

function validateSelector({ nodeSelector = {} }: Spec, { nodeSelector: old = {} }: Spec): Cause[] {
  if (Object.entries(old).every(([label, value]) => own(nodeSelector, label) === value)) return [];
  const rule = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
  return [invalidValue("spec.nodeSelector", nodeSelector, rule)];
}

/** One of the terms has to fit, so another term would widen the choice. What is only preferred may change at will. */
function validateNodeAffinity(wanted: Loose<NodeAffinity> = {}, before: Loose<NodeAffinity> = {}): Cause[] {
  const field = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
  const [terms, old] = [wanted[REQUIRED]?.nodeSelectorTerms ?? [], before[REQUIRED]?.nodeSelectorTerms ?? []];
  if (old.length === 0) return [];
  if (terms.length !== old.length) {
    const rule = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
    return [invalidValue(field, terms, rule)];
  }
  return terms.flatMap((term, index) => {
    if (isNarrowed(term, old[index] ?? {})) return [];
    return [
      invalidValue(`${field}[${index}]`, term, "only additions are allowed (no mutations or deletions)"),
    ];
  });
}

/** All requirements of a term have to hold. One without any fits no node at all: adding to it would make it fit some. */
function isNarrowed(term: Term, old: Term): boolean {
  const { matchExpressions = [], matchFields = [] } = old;
  if (matchExpressions.length + matchFields.length === 0) return sameValue(term, old);
  return beginsWith(term.matchExpressions, matchExpressions) && beginsWith(term.matchFields, matchFields);
}

function beginsWith(list: readonly unknown[] = [], beginning: readonly unknown[]): boolean {
  return list.length >= beginning.length && sameValue(list.slice(0, beginning.length), beginning);
}
