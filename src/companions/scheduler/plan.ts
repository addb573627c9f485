import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import { explainRefusals } from "./messages.ts";
import { refuseByAffinity } from "./node-affinity.ts";
import { claimsOf, type DelayedClaim, type PodClaims } from "./pod-claims.ts";
import { neighbourhoodOf, unsupportedAffinity } from "./pod-affinity.ts";
import { refuseByResources } from "./resources.ts";
import { bestNode } from "./score.ts";
import { spreadOf } from "./spread.ts";
import { refuseByTaint, refuseUnschedulable } from "./taints.ts";
import { refuseByLimit } from "./limits.ts";
import { chooseVolumes, isPromised, type VolumeChoice } from "./volumes.ts";
import type { Blocker, ClusterView, NodeView, Refusal } from "./view.ts";

/** What happens next to a pod without a node. Pure: the same pod and view give the same plan. */
export type PodPlan =
  /** It has a node, is going, or belongs to another scheduler. */
  | { readonly kind: "ignore" }
  | { readonly kind: "gated"; readonly message: string }
  | { readonly kind: "bind"; readonly node: string }
  /** Claims that wait for their first pod are told which node it will be; then they are waited for. */
  | Preparation
  /** The node that claims were promised to is gone: they are free again. */
  | { readonly kind: "release"; readonly claims: readonly DelayedClaim[] }
  | { readonly kind: "unschedulable"; readonly message: string; readonly until: readonly Blocker[] };

export interface Preparation {
  readonly kind: "prepare";
  readonly node: string;
  readonly promises: readonly { readonly claim: DelayedClaim; readonly volume: PersistentVolume }[];
  readonly selections: readonly DelayedClaim[];
  /** While nothing is left to be written: whose turn it is. */
  readonly message: string;
}

export interface PlanOptions {
  readonly schedulerName: string;
  /** Where it was on its way to; kept while that node still does. */
  readonly placedOn?: string | undefined;
}

export function planPod(pod: Pod, view: ClusterView, options: PlanOptions): PodPlan {
  if (!isOurs(pod, options)) return { kind: "ignore" };
  const gates = pod.spec?.schedulingGates ?? [];
  if (gates.length > 0)
    return { kind: "gated", message: "Scheduling is blocked due to non-empty scheduling gates" };
  const problem = unsupported(pod);
  if (problem !== undefined) return unschedulable(view, problem, []);
  const claims = claimsOf(pod, view);
  if (claims.kind === "blocked") return unschedulable(view, claims.message, claims.until);
  const lost = claims.delayed.filter(
    ({ selectedNode }) => selectedNode !== undefined && !view.nodes.some(({ name }) => name === selectedNode),
  );
  if (lost.length > 0) return { kind: "release", claims: lost };
  return planOnNodes(pod, claims, view, options);
}

function isOurs({ metadata, spec, status }: Pod, { schedulerName }: PlanOptions): boolean {
  if (spec?.nodeName || metadata.deletionTimestamp) return false;
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return false;
  return (spec?.schedulerName ?? "default-scheduler") === schedulerName;
}

function unsupported(pod: Pod): string | undefined {
  if ((pod.spec?.resourceClaims ?? []).length > 0)
    return "resourceClaims are not supported by this scheduler";
  return unsupportedAffinity(pod);
}

function unschedulable(view: ClusterView, problem: string, until: readonly Blocker[]): PodPlan {
  return { kind: "unschedulable", message: explainRefusals(view.nodes.length, problem), until };
}

type UsableClaims = Extract<PodClaims, { kind: "usable" }>;

interface PossibleNode {
  readonly nodeView: NodeView;
  readonly choice: Extract<VolumeChoice, { kind: "possible" }>;
}

function planOnNodes(pod: Pod, claims: UsableClaims, view: ClusterView, options: PlanOptions): PodPlan {
  const filter = createFilter(pod, claims, view);
  const possible: PossibleNode[] = [];
  const refusals: Refusal[][] = [];
  for (const nodeView of view.nodes) {
    const verdict = filter(nodeView);
    if (verdict.kind === "possible") possible.push({ nodeView, choice: verdict });
    else refusals.push([...verdict.refusals]);
  }
  const best = possible.find(({ nodeView }) => nodeView.name === options.placedOn) ?? bestNode(pod, possible);
  if (best) return planFor(best, claims);
  const until = new Set<Blocker>(["node", ...refusals.flat().flatMap((refusal) => refusal.until)]);
  return {
    kind: "unschedulable",
    message: explainRefusals(view.nodes.length, refusals),
    until: [...until],
  };
}

/** Cheap and common reasons first: the first filter that refuses a node is the one that is told. */
function createFilter(
  pod: Pod,
  claims: UsableClaims,
  view: ClusterView,
): (nodeView: NodeView) => VolumeChoice {
  const neighbourhood = neighbourhoodOf(pod, view);
  const spread = spreadOf(pod, view);
  const filters: readonly ((nodeView: NodeView) => Refusal | undefined)[] = [
    (nodeView) => refuseUnschedulable(pod, nodeView),
    (nodeView) => refuseByTaint(pod, nodeView),
    (nodeView) => refuseByAffinity(pod, nodeView),
  ];
  return (nodeView) => {
    for (const filter of filters) {
      const refusal = filter(nodeView);
      if (refusal) return { kind: "refused", refusals: [refusal] };
    }
    const short = refuseByResources(pod, nodeView);
    if (short.length > 0) return { kind: "refused", refusals: short };
    const choice = chooseVolumes(claims, nodeView, view);
    if (choice.kind === "refused") return choice;
    const refusal =
      refuseByLimit({ bound: claims.bound, choice }, nodeView, view) ??
      spread?.refuse(nodeView) ??
      neighbourhood?.refuse(nodeView);
    return refusal ? { kind: "refused", refusals: [refusal] } : choice;
  };
}

function planFor({ nodeView, choice }: PossibleNode, { delayed }: UsableClaims): PodPlan {
  const { name: node } = nodeView;
  if (delayed.length === 0) return { kind: "bind", node };
  const names = delayed.map(({ claim }) => claim.metadata.name ?? "").join(", ");
  return {
    kind: "prepare",
    node,
    promises: choice.existing.filter(({ claim, volume }) => !isPromised(volume, claim.claim)),
    selections: choice.provisioned.filter(({ selectedNode }) => selectedNode !== node),
    message: `waiting on node ${node} for volumes of claims ${names} to be bound`,
  };
}
