import { kind, type Kind } from "./kind.ts";
import { POLICY_KINDS } from "./kinds-policy.ts";
import { WORKLOAD_KINDS } from "./kinds-workloads.ts";

export { storedKind, type Kind } from "./kind.ts";

const CORE = { group: "", version: "v1" };
const STORAGE = { group: "storage.k8s.io", version: "v1" };
const RBAC = { group: "rbac.authorization.k8s.io", version: "v1", nameRule: "path-segment" } as const;
const SNAPSHOT = {
  group: "snapshot.storage.k8s.io",
  version: "v1",
  unconditionalUpdate: false,
  generation: "from-1",
} as const;

export const namespaces = kind({
  ...CORE,
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
  shortNames: ["ns"],
  status: "accept",
  deleteAnswer: "object",
  deleteCollection: false,
  nameRule: "label",
});

export const pods = kind({
  ...CORE,
  kind: "Pod",
  plural: "pods",
  namespaced: true,
  shortNames: ["po"],
  categories: ["all"],
  status: "accept",
  deleteAnswer: "object",
  generation: "from-1",
});

const events = kind({
  ...CORE,
  namespaced: true,
  kind: "Event",
  plural: "events",
  shortNames: ["ev"],
  createOnUpdate: true,
});

const persistent = { ...CORE, status: "accept", deleteAnswer: "object" } as const;
const cluster = { namespaced: false };
const inNamespace = { namespaced: true };

/** What volumes are about, and what every cluster has. */
const CLUSTER_KINDS: readonly Kind[] = [
  kind({ ...CORE, ...inNamespace, kind: "ConfigMap", plural: "configmaps", shortNames: ["cm"] }),
  events,
  namespaces,
  kind({ ...CORE, ...cluster, kind: "Node", plural: "nodes", shortNames: ["no"], status: "accept" }),
  kind({
    ...persistent,
    ...inNamespace,
    kind: "PersistentVolumeClaim",
    plural: "persistentvolumeclaims",
    shortNames: ["pvc"],
  }),
  kind({
    ...persistent,
    ...cluster,
    kind: "PersistentVolume",
    plural: "persistentvolumes",
    shortNames: ["pv"],
  }),
  pods,
  kind({ ...CORE, ...inNamespace, kind: "Secret", plural: "secrets" }),
  kind({
    ...CORE,
    ...inNamespace,
    kind: "ServiceAccount",
    plural: "serviceaccounts",
    shortNames: ["sa"],
    deleteAnswer: "object",
  }),
  kind({
    ...inNamespace,
    group: "events.k8s.io",
    version: "v1",
    kind: "Event",
    plural: "events",
    shortNames: ["ev"],
    createOnUpdate: true,
    storedAs: events,
  }),
  kind({
    ...inNamespace,
    group: "coordination.k8s.io",
    version: "v1",
    kind: "Lease",
    plural: "leases",
    createOnUpdate: true,
    unconditionalUpdate: false,
  }),
  kind({ ...RBAC, ...cluster, kind: "ClusterRoleBinding", plural: "clusterrolebindings" }),
  kind({ ...RBAC, ...cluster, kind: "ClusterRole", plural: "clusterroles" }),
  kind({ ...RBAC, ...inNamespace, kind: "RoleBinding", plural: "rolebindings" }),
  kind({ ...RBAC, ...inNamespace, kind: "Role", plural: "roles" }),
  kind({
    ...SNAPSHOT,
    ...cluster,
    kind: "VolumeSnapshotClass",
    plural: "volumesnapshotclasses",
    shortNames: ["vsclass", "vsclasses"],
  }),
  kind({
    ...SNAPSHOT,
    ...cluster,
    kind: "VolumeSnapshotContent",
    plural: "volumesnapshotcontents",
    shortNames: ["vsc", "vscs"],
    status: "accept",
  }),
  kind({
    ...SNAPSHOT,
    ...inNamespace,
    kind: "VolumeSnapshot",
    plural: "volumesnapshots",
    shortNames: ["vs"],
    status: "accept",
  }),
  kind({
    ...STORAGE,
    ...cluster,
    kind: "CSIDriver",
    plural: "csidrivers",
    deleteAnswer: "object",
    unconditionalUpdate: false,
    generation: "from-absent",
  }),
  kind({
    ...STORAGE,
    ...cluster,
    kind: "CSINode",
    plural: "csinodes",
    deleteAnswer: "object",
    unconditionalUpdate: false,
  }),
  kind({
    ...STORAGE,
    ...inNamespace,
    kind: "CSIStorageCapacity",
    plural: "csistoragecapacities",
    unconditionalUpdate: false,
  }),
  kind({
    ...STORAGE,
    ...cluster,
    kind: "StorageClass",
    plural: "storageclasses",
    shortNames: ["sc"],
    deleteAnswer: "object",
  }),
  kind({
    ...STORAGE,
    ...cluster,
    kind: "VolumeAttachment",
    plural: "volumeattachments",
    status: "restore",
    deleteAnswer: "object",
    unconditionalUpdate: false,
  }),
  kind({
    ...STORAGE,
    ...cluster,
    kind: "VolumeAttributesClass",
    plural: "volumeattributesclasses",
    shortNames: ["vac"],
    deleteAnswer: "object",
  }),
];

/** Every kind that is served. */
export const KINDS: readonly Kind[] = [...CLUSTER_KINDS, ...WORKLOAD_KINDS, ...POLICY_KINDS];

const byPath = new Map(KINDS.map((served) => [`${served.group}/${served.version}/${served.plural}`, served]));

export function findKind(group: string, version: string, plural: string): Kind | undefined {
  return byPath.get(`${group}/${version}/${plural}`);
}
