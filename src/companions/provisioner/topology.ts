import type { NodeSelectorTerm, TopologySelectorTerm } from "kubernetes-types/core/v1.js";
import type { CSINode } from "../../kube/api/csi-node.ts";
import type { Node } from "../../kube/api/node.ts";
import { StorageError } from "../errors.ts";

export type Segments = Record<string, string>;

export interface TopologyView {
  readonly driver: string;
  readonly csiNodes: Iterable<CSINode>;
  readonly nodeOf: (name: string) => Node | undefined;
  /** Chosen by the scheduler; undefined where the volume may be anywhere. */
  readonly selected: string | undefined;
  readonly allowed: readonly TopologySelectorTerm[];
}

export interface TopologyWish {
  readonly requisite: { readonly segments: Segments }[];
  readonly preferred: { readonly segments: Segments }[];
}

/**
 * Where the volume may be and where it should rather be. All places the driver serves are asked for, the chosen node's
 * first: a driver that cannot put it there may put it beside, and says so in its answer.
 */
export function planTopology(view: TopologyView): TopologyWish | undefined {
  const own = view.selected === undefined ? undefined : segmentsOfSelected(view);
  const all = distinct([...(own ? [own] : []), ...segmentsOfAll(view)]);
  const requisite = all.filter((segments) => isAllowed(segments, view.allowed));
  if (own && !isAllowed(own, view.allowed)) {
    throw new StorageError("NodeUnknown", `node "${view.selected}" is not in the class's allowedTopologies`);
  }
  if (requisite.length === 0) return undefined;
  const wish = requisite.map((segments) => ({ segments }));
  return { requisite: wish, preferred: wish };
}

function segmentsOfSelected({ driver, csiNodes, nodeOf, selected = "" }: TopologyView): Segments {
  for (const csiNode of csiNodes) {
    if (csiNode.metadata.name !== selected) continue;
    const segments = segmentsOf(csiNode, driver, nodeOf(selected));
    if (segments) return segments;
  }
  throw new StorageError(
    "NodeUnknown",
    `node "${selected}" has not registered driver ${driver} with its topology; is the driver running there?`,
  );
}

function segmentsOfAll({ driver, csiNodes, nodeOf }: TopologyView): Segments[] {
  return [...csiNodes]
    .sort((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1))
    .map((csiNode) => segmentsOf(csiNode, driver, nodeOf(csiNode.metadata.name ?? "")))
    .filter((segments) => segments !== undefined);
}

/** Undefined while the node does not have a value for every key the driver named. */
function segmentsOf(csiNode: CSINode, driver: string, node: Node | undefined): Segments | undefined {
  const keys = csiNode.spec.drivers.find(({ name }) => name === driver)?.topologyKeys ?? [];
  const { labels = {} } = node?.metadata ?? {};
  const pairs = keys.flatMap((key) => (labels[key] === undefined ? [] : [[key, labels[key]] as const]));
  return keys.length > 0 && pairs.length === keys.length ? Object.fromEntries(pairs) : undefined;
}

function isAllowed(segments: Segments, allowed: readonly TopologySelectorTerm[]): boolean {
  if (allowed.length === 0) return true;
  return allowed.some(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions.every(({ key, values }) => values.includes(segments[key] ?? "")),
  );
}

function distinct(all: readonly Segments[]): Segments[] {
  const byText = new Map(all.map((segments) => [JSON.stringify(Object.entries(segments).sort()), segments]));
  return [...byText.values()];
}

/** Where pods that use the volume may run: in any one of the places the driver named. */
export function toNodeSelectorTerms(
  accessible: readonly { readonly segments: Segments }[],
): NodeSelectorTerm[] {
  return accessible
    .filter(({ segments }) => Object.keys(segments).length > 0)
    .map(({ segments }) => ({
      matchExpressions: Object.entries(segments)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, value]) => ({ key, operator: "In" as const, values: [value] })),
    }));
}
