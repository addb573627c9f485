import type { CSINodeDriver } from "kubernetes-types/storage/v1.js";
import type { CSINode } from "../../kube/api/csi-node.ts";
import type { Node } from "../../kube/api/node.ts";
import { isObject, text } from "../../volumes/untrusted.ts";

/** What a driver said about this node: NodeGetInfo, in our words. */
export interface DriverOnNode {
  readonly name: string;
  readonly nodeId: string;
  /** 0 for no limit. */
  readonly maxVolumes: bigint;
  readonly topology: Readonly<Record<string, string>>;
}

/*
 * The CSINode object and the node's annotation and labels as functions of that. `undefined` means that nothing would
 * change, so nothing is written.
 */

export const NODE_ID_ANNOTATION = "csi.volume.kubernetes.io/nodeid";
const MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins";

/** In-tree plugins whose volumes this agent hands to CSI drivers; schedulers count them together. */
const MIGRATED_PLUGINS = [
  "aws-ebs",
  "azure-disk",
  "azure-file",
  "cinder",
  "gce-pd",
  "portworx-volume",
  "vsphere-volume",
]
  .map((name) => `kubernetes.io/${name}`)
  .join(",");

const COUNT_MAX = 2n ** 31n - 1n;

export function newCsiNode(node: { readonly name: string; readonly uid: string }): CSINode {
  return {
    metadata: {
      name: node.name,
      annotations: { [MIGRATED_ANNOTATION]: MIGRATED_PLUGINS },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid }],
    },
    spec: { drivers: [] },
  };
}

/** A node that was deleted and made again under its name is another one, and what the old one had is not its own. */
export function isOwnedBy({ metadata }: CSINode, nodeUid: string): boolean {
  const owners: unknown = metadata.ownerReferences;
  return (
    Array.isArray(owners) &&
    owners
      .filter(isObject)
      .some((owner: { kind?: unknown; uid?: unknown }) => owner.kind === "Node" && owner.uid === nodeUid)
  );
}

/** An object that lost its owner gets this node's; one of another node is not changed, see `isOwnedBy`. */
export function withOwner(object: CSINode, node: { readonly name: string; readonly uid: string }): CSINode {
  const owners: unknown = object.metadata.ownerReferences;
  const kept = Array.isArray(owners) ? owners.filter(isObject) : [];
  if (kept.some((owner: { kind?: unknown }) => owner.kind === "Node")) return object;
  const ownerReferences = [...kept, ...(newCsiNode(node).metadata.ownerReferences ?? [])];
  return { ...object, metadata: { ...object.metadata, ownerReferences } } as CSINode;
}

export function withMigrated(object: CSINode): CSINode | undefined {
  const { metadata } = object;
  if (metadata.annotations?.[MIGRATED_ANNOTATION] === MIGRATED_PLUGINS) return undefined;
  const annotations = { ...metadata.annotations, [MIGRATED_ANNOTATION]: MIGRATED_PLUGINS };
  return { ...object, metadata: { ...metadata, annotations } };
}

export function driversOf({ spec }: CSINode): readonly CSINodeDriver[] {
  const drivers: unknown = isObject(spec) ? spec.drivers : undefined;
  return Array.isArray(drivers) ? drivers.filter(isObject).map((driver) => driver as CSINodeDriver) : [];
}

export function toEntry({ name, nodeId, maxVolumes, topology }: DriverOnNode): CSINodeDriver {
  const entry: CSINodeDriver = { name, nodeID: nodeId, topologyKeys: Object.keys(topology).sort() };
  // A negative limit is the driver's mistake, and means none as upstream has it.
  if (maxVolumes > 0n) {
    entry.allocatable = { count: Number(maxVolumes > COUNT_MAX ? COUNT_MAX : maxVolumes) };
  }
  return entry;
}

/**
 * The versions to write, one after the other, until the driver's entry is there. A server lets an entry change its
 * count at most, so one that differs in more is taken out first.
 */
export function stepsToInstall(object: CSINode, facts: DriverOnNode): readonly CSINode[] {
  const entry = toEntry(facts);
  const before = driversOf(object).find(({ name }) => name === entry.name);
  if (before !== undefined && print(before) === print(entry)) return [];
  const without = driversOf(object).filter(({ name }) => name !== entry.name);
  const installed = { ...object, spec: { ...object.spec, drivers: [...without, entry] } };
  if (before === undefined || printIdentity(before) === printIdentity(entry)) return [installed];
  return [{ ...object, spec: { ...object.spec, drivers: without } }, installed];
}

/** Only the count of a driver that is there. */
export function withCount(object: CSINode, facts: DriverOnNode): CSINode | undefined {
  const entry = toEntry(facts);
  const before = driversOf(object).find(({ name }) => name === entry.name);
  if (before === undefined || before.allocatable?.count === entry.allocatable?.count) return undefined;
  const { allocatable: _, ...kept } = before;
  const after = entry.allocatable === undefined ? kept : { ...kept, allocatable: entry.allocatable };
  const drivers = driversOf(object).map((driver) => (driver === before ? after : driver));
  return { ...object, spec: { ...object.spec, drivers } };
}

export function withoutDriver(object: CSINode, name: string): CSINode | undefined {
  const kept = driversOf(object).filter((driver) => driver.name !== name);
  return kept.length === driversOf(object).length
    ? undefined
    : { ...object, spec: { ...object.spec, drivers: kept } };
}

function printIdentity({ name, nodeID, topologyKeys }: CSINodeDriver): string {
  return JSON.stringify([name, nodeID, [...(topologyKeys ?? [])].sort()]);
}

function print(entry: CSINodeDriver): string {
  return `${printIdentity(entry)}${entry.allocatable?.count ?? ""}`;
}

export interface NodePatch {
  readonly metadata: {
    readonly resourceVersion?: string;
    readonly annotations?: Readonly<Record<string, string | null>>;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

/** The node's own list of what drivers call it, and their topology as labels. */
export function nodePatchToInstall(node: Node, driver: DriverOnNode): NodePatch | undefined {
  const [collision] = labelCollisions(node, [driver]);
  if (collision !== undefined) throw new Error(collision);
  return nodePatchToRestore(node, [driver]);
}

/**
 * The same for drivers that are installed. A label that somebody gave another value stays: pods may have been placed by
 * it, and whoever wrote it meant to.
 */
export function nodePatchToRestore(node: Node, drivers: readonly DriverOnNode[]): NodePatch | undefined {
  const { labels = {} } = node.metadata;
  const ids = nodeIdsOf(node);
  const missing = drivers.flatMap(({ topology }) =>
    Object.entries(topology).filter(([key]) => labels[key] === undefined),
  );
  if (missing.length === 0 && drivers.every(({ name, nodeId }) => ids[name] === nodeId)) return undefined;
  const told = Object.fromEntries(drivers.map(({ name, nodeId }) => [name, nodeId]));
  return patchOf(node, { ...ids, ...told }, Object.fromEntries(missing));
}

/** What a driver says of the node's topology and the node's labels deny, in upstream's words. */
export function labelCollisions(node: Node, drivers: readonly DriverOnNode[]): readonly string[] {
  const { labels = {} } = node.metadata;
  return drivers.flatMap(({ topology }) =>
    Object.entries(topology)
      .filter(([key, value]) => labels[key] !== undefined && labels[key] !== value)
      .map(
        ([key, value]) =>
          `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${labels[key]}"`,
      ),
  );
}

/** Whether the cluster is told less, or something else, of these drivers than they said. */
export function isDamaged(
  node: Node,
  object: CSINode | undefined,
  drivers: readonly DriverOnNode[],
): boolean {
  if (nodePatchToRestore(node, drivers) !== undefined || object === undefined) return true;
  if (!isOwnedBy(object, node.metadata.uid ?? "") || withMigrated(object) !== undefined) return true;
  return drivers.some((driver) => stepsToInstall(object, driver).length > 0);
}

/** Topology labels stay: pods and volumes may have been placed by them. */
export function nodePatchToUninstall(node: Node, name: string): NodePatch | undefined {
  const { [name]: removed, ...ids } = nodeIdsOf(node);
  return removed === undefined ? undefined : patchOf(node, ids, {});
}

function patchOf(
  node: Node,
  ids: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>>,
): NodePatch {
  const sorted = Object.fromEntries(Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1)));
  const value = Object.keys(ids).length === 0 ? null : JSON.stringify(sorted);
  const { resourceVersion } = node.metadata;
  return {
    metadata: {
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      annotations: { [NODE_ID_ANNOTATION]: value },
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
    },
  };
}

/** What is no map of texts is replaced as a whole. */
function nodeIdsOf({ metadata }: Node): Readonly<Record<string, string>> {
  try {
    const ids: unknown = JSON.parse(text(metadata.annotations?.[NODE_ID_ANNOTATION]) || "{}");
    if (!isObject(ids)) return {};
    return Object.fromEntries(
      Object.entries(ids).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return {};
  }
}
