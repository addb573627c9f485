import type {
  NodeAffinity,
  NodeSpec,
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
  PodSpec,
} from "kubernetes-types/core/v1.js";
import type { Node } from "../../kube/api/node.ts";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { Pod } from "../../kube/api/pod.ts";
import type { VolumeAttachment } from "../../kube/api/volume-attachment.ts";
import { keyOf } from "../../kube/object.ts";
import { classNameOf, volumeClassOf } from "../claims.ts";
import type { StorageClass } from "../kinds.ts";
import { repellingTermsOf } from "./pod-affinity.ts";
import { claimUsesOf } from "./pod-claims.ts";
import { planPod } from "./plan.ts";
import type { ClusterView } from "./view.ts";

/** A cluster as a table: what a test does not name has a default that refuses nobody. */
export interface Table {
  readonly nodes?: Readonly<Record<string, NodeRow>>;
  /** On nodes, by `spec.nodeName`. */
  readonly pods?: readonly Pod[];
  readonly claims?: readonly PersistentVolumeClaim[];
  readonly volumes?: readonly PersistentVolume[];
  readonly classes?: readonly StorageClass[];
  readonly attachments?: readonly VolumeAttachment[];
}

export interface NodeRow extends NodeSpec {
  readonly labels?: Readonly<Record<string, string>>;
  readonly allocatable?: Readonly<Record<string, string>>;
  readonly ready?: "True" | "False" | "Unknown" | "missing";
  /** Drivers registered, with how many volumes they take. */
  readonly drivers?: Readonly<Record<string, number | undefined>>;
}

export function viewOf(table: Table): ClusterView {
  const { nodes = { a: {} }, claims = [], volumes = [], classes = [], attachments = [] } = table;
  const pods = table.pods ?? [];
  const placed = pods.flatMap((pod) => (pod.spec?.nodeName ? [{ pod, nodeName: pod.spec.nodeName }] : []));
  return {
    nodes: Object.entries(nodes).map(([name, row]) => ({
      name,
      node: nodeOf(name, row),
      csiNode: row.drivers && {
        metadata: { name },
        spec: {
          drivers: Object.entries(row.drivers).map(([driver, count]) => ({
            name: driver,
            nodeID: name,
            ...(count !== undefined && { allocatable: { count } }),
          })),
        },
      },
      pods: pods.filter(({ spec }) => spec?.nodeName === name),
      planned: new Map(),
      attachments: attachments.filter(({ spec }) => spec.nodeName === name),
    })),
    claim: (key) => claims.find((claim) => keyOf(claim) === key),
    volume: (name) => volumes.find(({ metadata }) => metadata.name === name),
    storageClass: (name) => classes.find(({ metadata }) => metadata.name === name),
    candidates: (claim) => volumes.filter((volume) => volumeClassOf(volume) === (classNameOf(claim) ?? "")),
    isCsiDriver: (name) => Object.values(nodes).some(({ drivers = {} }) => name in drivers),
    podsUsing: (claim) => pods.filter((pod) => claimUsesOf(pod).some(({ key }) => key === claim)),
    repelling: () => placed.filter(({ pod }) => repellingTermsOf(pod).length > 0),
  };
}

function nodeOf(name: string, row: NodeRow): Node {
  const { labels, allocatable, ready = "True", drivers: _, ...spec } = row;
  return {
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels } },
    spec,
    status: {
      conditions: ready === "missing" ? [] : [{ type: "Ready", status: ready }],
      ...(allocatable && { allocatable: { ...allocatable } }),
    },
  };
}

/** What becomes of a pod: `-> node`, `prepare node`, or the words of its condition. */
export function verdict(spec: Partial<PodSpec>, table: Table = {}, more: Partial<Pod> = {}): string {
  const plan = planPod(pod("web", spec, more), viewOf(table), { schedulerName: "default-scheduler" });
  switch (plan.kind) {
    case "bind":
      return `-> ${plan.node}`;
    case "prepare": {
      const promised = plan.promises.map(
        ({ claim, volume }) => `${volume.metadata.name} to ${nameOf(claim)}`,
      );
      const selected = plan.selections.map((claim) => `${nameOf(claim)} to be made`);
      return `prepare ${[plan.node, ...promised, ...selected].join(", ")}`;
    }
    case "unschedulable":
      return plan.message;
    case "release":
      return `release ${plan.claims.map(nameOf).join(", ")}`;
    case "gated":
    case "ignore":
      return plan.kind;
  }
}

function nameOf({ claim }: { readonly claim: PersistentVolumeClaim }): string {
  return claim.metadata.name ?? "";
}

export function pod(name: string, spec: Partial<PodSpec> = {}, more: Partial<Pod> = {}): Pod {
  return {
    ...more,
    metadata: { name, namespace: "default", uid: `uid-${name}`, ...more.metadata },
    spec: { containers: [{ name: "app" }], ...spec },
  };
}

export function claim(
  name: string,
  spec: Partial<PersistentVolumeClaimSpec> = {},
  more: Partial<PersistentVolumeClaim> = {},
): PersistentVolumeClaim {
  return {
    ...more,
    metadata: { name, namespace: "default", uid: `uid-${name}`, ...more.metadata },
    spec: {
      accessModes: ["ReadWriteOnce"],
      storageClassName: "later",
      resources: { requests: { storage: "1Gi" } },
      ...spec,
    },
    status: { phase: spec.volumeName ? "Bound" : "Pending", ...more.status },
  };
}

export function volume(name: string, spec: Partial<PersistentVolumeSpec> = {}): PersistentVolume {
  return {
    metadata: { name },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "1Gi" },
      storageClassName: "later",
      csi: { driver: "csi.test", volumeHandle: `handle-${name}` },
      ...spec,
    },
    status: { phase: spec.claimRef ? "Bound" : "Available" },
  };
}

/** The volume `pv-<claim>`, bound to the claim. */
export function volumeFor(name: string, spec: Partial<PersistentVolumeSpec> = {}): PersistentVolume {
  const claimRef = { namespace: "default", name, uid: `uid-${name}` };
  return volume(`pv-${name}`, { claimRef, ...spec });
}

export function boundClaim(
  name: string,
  spec: Partial<PersistentVolumeClaimSpec> = {},
): PersistentVolumeClaim {
  return claim(name, { volumeName: `pv-${name}`, ...spec });
}

export function storageClass(name: string, more: Partial<StorageClass> = {}): StorageClass {
  return {
    metadata: { name },
    provisioner: "csi.test",
    volumeBindingMode: "WaitForFirstConsumer",
    ...more,
  };
}

/** A pod's spec with these claims in it. */
export function using(...claims: readonly string[]): Partial<PodSpec> {
  return {
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  };
}

/** A volume that only these nodes reach. */
export function reachableFrom(
  ...names: readonly string[]
): NonNullable<PersistentVolumeSpec["nodeAffinity"]> {
  return { required: requiring("kubernetes.io/hostname", names) };
}

export function requiring(
  key: string,
  values: readonly string[],
): NonNullable<NodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"]> {
  const expression = { key, operator: "In", values: [...values] };
  return { nodeSelectorTerms: [{ matchExpressions: [expression] }] };
}
