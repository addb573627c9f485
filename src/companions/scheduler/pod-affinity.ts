import type { PodAffinityTerm } from "kubernetes-types/core/v1.js";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import type { Pod } from "../../kube/api/pod.ts";
import { fromLabelSelectorObject, matchesLabels } from "../../kube/selectors.ts";
import type { ClusterView, NodeView, PlacedPod, Refusal } from "./view.ts";

/**
 * Pods that must be, or must not be, near certain others: what `podAffinity` and `podAntiAffinity` require. Near means on
 * nodes with the same value of a label. Preferences are left out: they never forbid a node.
 */
export interface Neighbourhood {
  refuse(nodeView: NodeView): Refusal | undefined;
}

/** Worked out once a pod; undefined where nothing in the cluster asks for it, which is nearly always. */
export function neighbourhoodOf(pod: Pod, view: ClusterView): Neighbourhood | undefined {
  const { podAffinity, podAntiAffinity } = pod.spec?.affinity ?? {};
  const wanted = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const unwanted = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const repelled = placesThatRepel(pod, view);
  if (wanted.length + unwanted.length + repelled.length === 0) return undefined;
  const attracting = wanted.map((term) => placesOf(pod, term, view));
  const repelling = unwanted.map((term) => placesOf(pod, term, view));
  // The first of a group that wants to stay together has nobody to go to, and may begin anywhere.
  const isFirst =
    attracting.every(({ size }) => size === 0) && wanted.every((term) => selects(term, pod, pod));
  return {
    refuse({ node }) {
      const labels = node.metadata.labels ?? {};
      const isIn = (places: ReadonlySet<string>, key: string) =>
        labels[key] !== undefined && places.has(labels[key]);
      const isNear = wanted.every(({ topologyKey }, index) =>
        isFirst ? labels[topologyKey] !== undefined : isIn(attracting[index] ?? NOWHERE, topologyKey),
      );
      if (!isNear) return TOO_FAR;
      if (unwanted.some(({ topologyKey }, index) => isIn(repelling[index] ?? NOWHERE, topologyKey)))
        return TOO_NEAR;
      return repelled.some(({ key, value }) => labels[key] === value) ? REPELLED : undefined;
    },
  };
}

/** What here cannot be honoured; a pod that asks for it waits, rather than going where it must not be. */
export function unsupportedAffinity({ spec }: Pod): string | undefined {
  const terms = [
    ...(spec?.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
  ];
  const isBounded = ({ namespaceSelector }: PodAffinityTerm) =>
    namespaceSelector !== undefined && !isEmpty(namespaceSelector);
  return terms.some(isBounded)
    ? "namespaceSelector of pod affinity is not supported by this scheduler: name the namespaces"
    : undefined;
}

const NOWHERE: ReadonlySet<string> = new Set();
const TOO_FAR: Refusal = { text: "node(s) didn't match pod affinity rules", until: ["node", "pod"] };
const TOO_NEAR: Refusal = { text: "node(s) didn't match pod anti-affinity rules", until: ["node", "room"] };
const REPELLED: Refusal = {
  text: "node(s) didn't satisfy existing pods anti-affinity rules",
  until: ["node", "room"],
};

/** Values of the term's label on nodes with a pod that it selects. */
function placesOf(pod: Pod, term: PodAffinityTerm, view: ClusterView): ReadonlySet<string> {
  const places = new Set<string>();
  for (const { node, pods } of view.nodes) {
    const value = node.metadata.labels?.[term.topologyKey];
    if (value !== undefined && pods.some((other) => selects(term, pod, other))) places.add(value);
  }
  return places;
}

/** Where pods are that want this one to stay away. */
function placesThatRepel(
  pod: Pod,
  view: ClusterView,
): readonly { readonly key: string; readonly value: string | undefined }[] {
  return view.repelling().flatMap((placed) => {
    const terms = repellingTermsOf(placed.pod).filter((term) => selects(term, placed.pod, pod));
    return terms.map(({ topologyKey }) => ({ key: topologyKey, value: labelAt(placed, topologyKey, view) }));
  });
}

export function repellingTermsOf({ spec }: Pod): readonly PodAffinityTerm[] {
  return spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}

/** A value no label has stands for none: a node without the label is not near anything. */
function labelAt({ nodeName }: PlacedPod, key: string, view: ClusterView): string {
  const node = view.nodes.find(({ name }) => name === nodeName)?.node;
  return node?.metadata.labels?.[key] ?? "(no such label)";
}

/** Whether the term of `owner` means `other`. */
function selects(term: PodAffinityTerm, owner: Pod, other: Pod): boolean {
  const { namespaces = [], namespaceSelector, labelSelector } = term;
  const isEverywhere = namespaceSelector !== undefined && isEmpty(namespaceSelector);
  const isOwn = namespaces.length === 0 && namespaceSelector === undefined;
  const own = isOwn ? [owner.metadata.namespace ?? ""] : namespaces;
  if (!isEverywhere && !own.includes(other.metadata.namespace ?? "")) return false;
  return selectsLabels(labelSelector, other) && hasSameValues(term, owner, other);
}

/** Keys whose values are taken from the owner itself; a key the owner does not have asks for nothing. */
function hasSameValues(
  { matchLabelKeys = [], mismatchLabelKeys = [] }: PodAffinityTerm,
  owner: Pod,
  other: Pod,
): boolean {
  const [own, others] = [owner.metadata.labels ?? {}, other.metadata.labels ?? {}];
  return (
    matchLabelKeys.every((key) => own[key] === undefined || own[key] === others[key]) &&
    mismatchLabelKeys.every((key) => own[key] === undefined || own[key] !== others[key])
  );
}

/** No selector selects nothing; one that cannot be read neither. */
export function selectsLabels(selector: LabelSelector | undefined, { metadata }: Pod): boolean {
  if (!selector) return false;
  try {
    return matchesLabels(fromLabelSelectorObject(selector), metadata.labels);
  } catch {
    return false;
  }
}

function isEmpty({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length + matchExpressions.length === 0;
}
