import type { TopologySelectorTerm } from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import { mismatchOf } from "../binder/match.ts";
import { isClaimedBy } from "../claims.ts";
import { bytesOf } from "../sizes.ts";
import { driversOf } from "./csi-drivers.ts";
import { matchesNodeSelector } from "../../kube/node-selector.ts";
import { driverOf } from "./limits.ts";
import type { BoundClaim, DelayedClaim } from "./pod-claims.ts";
import type { ClusterView, NodeView, Refusal } from "./view.ts";

/** What a pod's claims would get on one node, or why that node cannot serve them. */
export type VolumeChoice =
  | { readonly kind: "refused"; readonly refusals: readonly Refusal[] }
  | {
      readonly kind: "possible";
      /** Volumes that exist, for claims that wait for their first pod. */
      readonly existing: readonly { readonly claim: DelayedClaim; readonly volume: PersistentVolume }[];
      readonly provisioned: readonly DelayedClaim[];
    };

export function chooseVolumes(
  { bound, delayed }: { readonly bound: readonly BoundClaim[]; readonly delayed: readonly DelayedClaim[] },
  nodeView: NodeView,
  view: ClusterView,
): VolumeChoice {
  const { node, name } = nodeView;
  if (bound.some(({ volume }) => !isReachable(volume, node))) return refused(AFFINITY_CONFLICT);
  const missing = bound.map(({ volume }) => missingDriver(driverOf(volume), nodeView, view)).find(Boolean);
  if (missing) return refused(missing);
  const existing: { claim: DelayedClaim; volume: PersistentVolume }[] = [];
  const provisioned: DelayedClaim[] = [];
  for (const claim of delayed) {
    if (claim.selectedNode !== undefined && claim.selectedNode !== name) return refused(NO_VOLUME);
    const taken = new Set(existing.map(({ volume }) => volume.metadata.name));
    const volume = claim.selectedNode === undefined ? findExisting(claim, { node, taken }, view) : undefined;
    if (volume) existing.push({ claim, volume });
    else {
      const refusal = refuseProvisioning(claim, nodeView, view);
      if (refusal) return refused(refusal);
      provisioned.push(claim);
    }
  }
  return { kind: "possible", existing, provisioned };
}

const AFFINITY_CONFLICT: Refusal = {
  text: "node(s) had volume node affinity conflict",
  until: ["node", "volume"],
};
const NO_VOLUME: Refusal = {
  text: "node(s) didn't find available persistent volumes to bind",
  until: ["node", "volume", "class"],
};

function refused(refusal: Refusal): VolumeChoice {
  return { kind: "refused", refusals: [refusal] };
}

function isReachable({ spec }: PersistentVolume, node: Node): boolean {
  const required = spec?.nodeAffinity?.required;
  return !required || matchesNodeSelector(required, node);
}

/** One promised to the claim already, else the smallest that fits and is within reach; by name among equals. */
function findExisting(
  { claim }: DelayedClaim,
  { node, taken }: { readonly node: Node; readonly taken: ReadonlySet<string | undefined> },
  view: ClusterView,
): PersistentVolume | undefined {
  const fitting = view
    .candidates(claim)
    .filter((volume) => !taken.has(volume.metadata.name) && isReachable(volume, node))
    .filter((volume) => isPromised(volume, claim) || isFree(volume, claim));
  const promised = fitting.find((volume) => isPromised(volume, claim));
  return promised ?? fitting.reduce<PersistentVolume | undefined>(smaller, undefined);
}

export function isPromised(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  return !volume.metadata.deletionTimestamp && isClaimedBy(volume, claim);
}

function isFree(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const { spec, status } = volume;
  return !spec?.claimRef && status?.phase === "Available" && mismatchOf(volume, claim) === undefined;
}

function smaller(best: PersistentVolume | undefined, one: PersistentVolume): PersistentVolume {
  if (!best) return one;
  const [size, bestSize] = [sizeOf(one), sizeOf(best)];
  if (size !== bestSize) return size < bestSize ? one : best;
  return (one.metadata.name ?? "") < (best.metadata.name ?? "") ? one : best;
}

function sizeOf({ spec }: PersistentVolume): bigint {
  return bytesOf(spec?.capacity?.["storage"]);
}

/** The provisioner of classes whose volumes are all made by hand. */
const NO_PROVISIONER = "kubernetes.io/no-provisioner";

function refuseProvisioning(
  { storageClass }: DelayedClaim,
  nodeView: NodeView,
  view: ClusterView,
): Refusal | undefined {
  const { provisioner, allowedTopologies = [] } = storageClass;
  if (provisioner === NO_PROVISIONER) return NO_VOLUME;
  const labels = nodeView.node.metadata.labels ?? {};
  const isAllowed = allowedTopologies.length === 0 || allowedTopologies.some((term) => isIn(term, labels));
  return isAllowed ? missingDriver(provisioner, nodeView, view) : NO_VOLUME;
}

function isIn(
  { matchLabelExpressions = [] }: TopologySelectorTerm,
  labels: Readonly<Record<string, string>>,
): boolean {
  return matchLabelExpressions.every(({ key, values }) => values.includes(labels[key] ?? ""));
}

/**
 * A node whose driver has not registered says neither where its volumes can be nor how many it takes. Upstream sends the
 * pod all the same, to wait there; here another node may have the driver.
 */
function missingDriver(
  driver: string | undefined,
  { csiNode }: NodeView,
  view: ClusterView,
): Refusal | undefined {
  if (driver === undefined || !view.isCsiDriver(driver)) return undefined;
  if (driversOf(csiNode).some(({ name }) => name === driver)) return undefined;
  return { text: `node(s) did not have the CSI driver ${driver} registered`, until: ["node"] };
}
