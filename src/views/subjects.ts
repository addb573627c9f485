import { BASE_KINDS, type ObjectKind } from "./objects.ts";

/** What `mooring why` can be asked about, by the short name that its answers use. */
export const SUBJECT_KINDS = [
  "pod",
  "pvc",
  "pv",
  "node",
  "va",
  "statefulset",
  "deployment",
  "volumesnapshot",
  "storageclass",
  "csidriver",
] as const;
export type SubjectKind = (typeof SUBJECT_KINDS)[number];

export interface Subject {
  readonly kind: SubjectKind;
  readonly name: string;
  /** Of kinds that live in one; else empty. */
  readonly namespace: string;
}

interface SubjectTraits {
  /** As views have it. */
  readonly read: ObjectKind;
  readonly namespaced: boolean;
  /** The names that kubectl takes, in lower case and without the API group. */
  readonly names: readonly string[];
  /** What is read besides the base kinds. */
  readonly needs: readonly ObjectKind[];
}

const SNAPSHOT_KINDS: readonly ObjectKind[] = ["snapshots", "snapshotClasses", "snapshotContents"];

export const SUBJECTS: Readonly<Record<SubjectKind, SubjectTraits>> = {
  // A pod or claim that is not there may be one that a StatefulSet should have made.
  pod: {
    read: "pods",
    namespaced: true,
    names: ["po", "pod", "pods"],
    needs: ["statefulSets", "resourceQuotas"],
  },
  pvc: {
    read: "claims",
    namespaced: true,
    names: ["pvc", "persistentvolumeclaim", "persistentvolumeclaims"],
    needs: ["statefulSets", "resourceQuotas"],
  },
  pv: {
    read: "volumes",
    namespaced: false,
    names: ["pv", "persistentvolume", "persistentvolumes"],
    needs: [],
  },
  node: { read: "nodes", namespaced: false, names: ["no", "node", "nodes"], needs: [] },
  va: {
    read: "attachments",
    namespaced: false,
    names: ["va", "volumeattachment", "volumeattachments"],
    needs: [],
  },
  statefulset: {
    read: "statefulSets",
    namespaced: true,
    names: ["sts", "statefulset", "statefulsets"],
    needs: ["statefulSets", "resourceQuotas"],
  },
  deployment: {
    read: "deployments",
    namespaced: true,
    names: ["deploy", "deployment", "deployments"],
    needs: ["deployments", "replicaSets", "resourceQuotas"],
  },
  volumesnapshot: {
    read: "snapshots",
    namespaced: true,
    names: ["vs", "volumesnapshot", "volumesnapshots"],
    needs: SNAPSHOT_KINDS,
  },
  storageclass: {
    read: "storageClasses",
    namespaced: false,
    names: ["sc", "storageclass", "storageclasses"],
    needs: [],
  },
  csidriver: {
    read: "csiDrivers",
    namespaced: false,
    names: ["csidriver", "csidrivers"],
    needs: [],
  },
};

/** Of a question about one object. */
export function kindsFor(kind: SubjectKind): readonly ObjectKind[] {
  return [...BASE_KINDS, ...SUBJECTS[kind].needs];
}

/** By any of its names, with the API group or without: `sts`, `statefulsets.apps`. */
export function subjectKindNamed(name: string): SubjectKind | undefined {
  const [plain = ""] = name.toLowerCase().split(".");
  return SUBJECT_KINDS.find((kind) => SUBJECTS[kind].names.includes(plain));
}
