import type { Fault } from "./faults.testing.ts";
import {
  boundSnapshot,
  content,
  deployment,
  memberPod,
  quota,
  replicaSet,
  replicaSetEvent,
  setEvent,
  snapshot,
  snapshotClass,
  statefulSet,
} from "./kind-objects.testing.ts";
import {
  ago,
  attachment,
  claim,
  claimEvent,
  cluster,
  csiNode,
  DRIVER,
  node,
  pendingClaim,
  pod,
  runningPod,
  storageClass,
  usingNode,
  volume,
} from "./objects.testing.ts";
import type { ClusterObjects } from "./objects.ts";
import type { Reason } from "./reasons/reasons.ts";
import { volumeAttachmentName } from "../volumes/names.ts";

/** Questions about attachments, workloads, snapshots, classes and drivers. */

const SET = { kind: "statefulset", name: "db", namespace: "shop" } as const;
const DEPLOYMENT = { kind: "deployment", name: "web", namespace: "shop" } as const;
const SNAPSHOT = { kind: "volumesnapshot", name: "nightly", namespace: "shop" } as const;
const CLASS = { kind: "storageclass", name: "fast", namespace: "" } as const;
const DRIVER_SUBJECT = { kind: "csidriver", name: DRIVER, namespace: "" } as const;
const NAME_A = volumeAttachmentName({ driver: DRIVER, volumeHandle: "vol-1" }, "node-a");
const attachmentNamed = (name: string) => ({ kind: "va", name, namespace: "" }) as const;

const asking =
  (subject: Fault["subject"]) =>
  (name: string, reason: Reason | undefined, changes: Partial<ClusterObjects>): Fault => ({
    name,
    reason,
    subject,
    objects: cluster(changes),
  });

const onA = asking(attachmentNamed(NAME_A));
const madeByHand = attachment("node-a", { metadata: { name: "made-by-hand" } });
const leaving = { metadata: { deletionTimestamp: ago(120) } };

const ATTACHMENT_FAULTS: readonly Fault[] = [
  onA("va-healthy", undefined, { pods: [runningPod()] }),
  onA("va-nobody-uses-it", "attachment-orphaned", { pods: [], nodes: [node(), node("node-b")] }),
  onA("va-still-in-use", "still-mounted", { pods: [] }),
  onA("va-detach-error", "detach-failed", {
    pods: [],
    attachments: [
      attachment("node-a", {
        ...leaving,
        status: {
          attached: true,
          detachError: { message: "rpc error: code = Internal desc = device busy", time: ago(60) },
        },
      }),
    ],
  }),
  onA("va-not-attached", "driver-attaching", {
    attachments: [attachment("node-a", { status: { attached: false } })],
    nodes: [node(), node("node-b")],
  }),
  onA("va-attach-error", "attach-failed", {
    pods: [],
    attachments: [
      attachment("node-a", {
        status: {
          attached: false,
          attachError: { message: "rpc error: code = NotFound desc = no disk vol-1", time: ago(30) },
        },
      }),
    ],
    claims: [claim("data"), claim("unread")],
    nodes: [node(), node("node-b")],
    unread: [{ kind: "pods", right: "list pods", why: "not permitted" }],
  }),
  onA("va-node-gone", "held-by-missing-node", {
    pods: [],
    nodes: [node("node-b")],
    csiNodes: [csiNode("node-b")],
  }),
  asking(attachmentNamed("made-by-hand"))("va-foreign-in-use", "foreign-attachment", {
    pods: [runningPod()],
    attachments: [attachment(), madeByHand],
  }),
  asking(attachmentNamed("made-by-hand"))("va-foreign-unused", "foreign-attachment", {
    pods: [],
    attachments: [madeByHand],
    nodes: [node(), node("node-b")],
  }),
];

const set = asking(SET);
const db = (ordinal: number, parts: Parameters<typeof memberPod>[2] = {}) =>
  memberPod(["StatefulSet", "db"], `db-${ordinal}`, { claim: `data-db-${ordinal}`, ...parts });
const claimOf = (ordinal: number, parts: Parameters<typeof claim>[1] = {}) =>
  claim(`data-db-${ordinal}`, { ...parts, spec: { volumeName: "pv-1", ...parts.spec } });
const pv = volume("pv-1", {
  spec: { claimRef: { namespace: "shop", name: "data-db-0", uid: "uid-data-db-0" } },
});
/** One ordinal that is well. */
const first = { pods: [db(0)], claims: [claimOf(0)], volumes: [pv] };

const SET_FAULTS: readonly Fault[] = [
  set("statefulset-healthy", undefined, { ...first, statefulSets: [statefulSet(1)] }),
  set("statefulset-pod-over-quota", "workload-quota", {
    ...first,
    statefulSets: [statefulSet(3, { status: { readyReplicas: 1 } })],
    resourceQuotas: [quota({ pods: "4" }, { pods: "4" })],
    events: [
      setEvent(
        'create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: exceeded quota: team-quota, requested: pods=1, used: pods=4, limited: pods=4',
      ),
    ],
  }),
  ...(["pod", "pvc"] as const).map((kind) =>
    asking({ kind, name: kind === "pod" ? "db-1" : "data-db-1", namespace: "shop" })(
      `statefulset-${kind}-not-made`,
      "workload-quota",
      {
        ...first,
        statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
        resourceQuotas: [quota({ pods: "4" }, { pods: "4" })],
      },
    ),
  ),
  set("statefulset-quota-without-event", "workload-quota", {
    ...first,
    statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
    resourceQuotas: [quota({ persistentvolumeclaims: "5" }, { persistentvolumeclaims: "5" })],
  }),
  set("statefulset-claim-over-quota", "workload-quota", {
    ...first,
    statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
    events: [
      setEvent(
        'create Claim data-db-1 for Pod db-1 in StatefulSet db failed error: persistentvolumeclaims "data-db-1" is forbidden: exceeded quota: team-quota, requested: requests.storage=10Gi, used: requests.storage=95Gi, limited: requests.storage=100Gi',
      ),
    ],
  }),
  set("statefulset-pod-denied", "workload-denied", {
    ...first,
    statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
    events: [
      setEvent(
        'create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: violates PodSecurity "restricted:latest": hostPath volumes (volume "logs")',
      ),
    ],
  }),
  set("statefulset-create-failed", "workload-create-failed", {
    ...first,
    statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
    events: [
      setEvent(
        'create Pod db-1 in StatefulSet db failed error: Pod "db-1" is invalid: spec.containers: Required value',
      ),
    ],
  }),
  set("statefulset-controller-silent", "workload-pod-not-made", {
    pods: [],
    claims: [],
    volumes: [],
    statefulSets: [statefulSet(2, { status: { observedGeneration: undefined, readyReplicas: undefined } })],
  }),
  set("statefulset-claim-deleting", "workload-claim-deleting", {
    ...first,
    claims: [
      claimOf(0),
      claimOf(1, { metadata: { deletionTimestamp: ago(300), finalizers: ["kubernetes.io/pvc-protection"] } }),
    ],
    statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
  }),
  set("statefulset-class-missing", "class-missing", {
    ...first,
    pods: [db(0), db(1, { waits: true, spec: { nodeName: undefined } })],
    claims: [claimOf(0), claimOf(1, { spec: { volumeName: undefined }, status: { phase: "Pending" } })],
    storageClasses: [],
    statefulSets: [statefulSet(3, { status: { readyReplicas: 1 } })],
  }),
  set("statefulset-pod-not-ready", "workload-pod-not-ready", {
    ...first,
    pods: [
      db(0, {
        status: {
          conditions: [{ type: "Ready", status: "False", message: "containers with unready status: [app]" }],
        },
      }),
    ],
    claims: [claimOf(0), claimOf(7)],
    statefulSets: [statefulSet(2, { status: { readyReplicas: 0 } })],
  }),
  set("statefulset-pod-over", "workload-pod-over", {
    ...first,
    pods: [db(0, { status: { phase: "Failed", reason: "Evicted", conditions: [] } })],
    statefulSets: [statefulSet(1, { status: { readyReplicas: 0 } })],
  }),
  set("statefulset-parallel", "claim-missing", {
    ...first,
    pods: [db(0), db(1, { waits: true }), db(2, { waits: true })],
    statefulSets: [
      statefulSet(3, { spec: { podManagementPolicy: "Parallel" }, status: { readyReplicas: 1 } }),
    ],
  }),
];

const deployed = asking(DEPLOYMENT);
const OLD = ["ReplicaSet", "web-5b6f4"] as const;
const NEW = ["ReplicaSet", "web-7d9c5"] as const;
const sets = [replicaSet("web-5b6f4"), replicaSet("web-7d9c5")];
const onB = attachment("node-b");

const DEPLOYMENT_FAULTS: readonly Fault[] = [
  deployed("deployment-healthy", undefined, {
    pods: [memberPod(NEW, "web-7d9c5-x8x2p")],
    deployments: [deployment(1)],
    replicaSets: sets,
  }),
  deployed("deployment-rollout-deadlock", "rollout-deadlock", {
    pods: [
      memberPod(OLD, "web-5b6f4-old", { spec: { nodeName: "node-b" } }),
      memberPod(NEW, "web-7d9c5-new", { waits: true }),
    ],
    attachments: [onB],
    nodes: [node(), usingNode("node-b")],
    deployments: [deployment(1)],
    replicaSets: sets,
  }),
  deployed("deployment-rollout-deadlock-one-pod", "rollout-deadlock", {
    pods: [
      memberPod(OLD, "web-5b6f4-old", { spec: { nodeName: "node-b" } }),
      memberPod(NEW, "web-7d9c5-new", { waits: true, spec: { nodeName: undefined } }),
    ],
    claims: [claim("data", { spec: { accessModes: ["ReadWriteOncePod"] } })],
    attachments: [onB],
    nodes: [node(), usingNode("node-b")],
    deployments: [deployment(1)],
    replicaSets: sets,
  }),
  deployed("deployment-replicas-share-claim", "replicas-share-claim", {
    pods: [
      memberPod(NEW, "web-7d9c5-one", { spec: { nodeName: "node-b" } }),
      memberPod(NEW, "web-7d9c5-two", { waits: true }),
    ],
    attachments: [onB],
    nodes: [node(), usingNode("node-b")],
    deployments: [deployment(2, { status: { readyReplicas: 1 } })],
    replicaSets: sets,
  }),
  deployed("deployment-over-quota", "workload-quota", {
    pods: [memberPod(NEW, "web-7d9c5-one")],
    deployments: [
      deployment(3, {
        status: {
          readyReplicas: 1,
          conditions: [
            {
              type: "ReplicaFailure",
              status: "True",
              reason: "FailedCreate",
              message:
                'pods "web-7d9c5-xyz" is forbidden: exceeded quota: team-quota, requested: requests.memory=1Gi, used: requests.memory=8Gi, limited: requests.memory=8Gi',
            },
          ],
        },
      }),
    ],
    replicaSets: sets,
  }),
  deployed("deployment-denied", "workload-denied", {
    pods: [],
    deployments: [deployment(1, { status: { readyReplicas: 0 } })],
    replicaSets: sets,
    events: [
      replicaSetEvent(
        'Error creating: admission webhook "policy.example.com" denied the request: volumes of class fast are not allowed here',
      ),
    ],
  }),
  deployed("deployment-claim-missing", "claim-missing", {
    pods: [memberPod(NEW, "web-7d9c5-one", { waits: true })],
    claims: [],
    volumes: [],
    attachments: [],
    deployments: [deployment(1, { status: { readyReplicas: 0 } })],
    replicaSets: sets,
  }),
];

const snap = asking(SNAPSHOT);
const classes = { snapshotClasses: [snapshotClass()] };
const restored = pendingClaim({
  metadata: { name: "restored" },
  spec: { dataSource: { kind: "VolumeSnapshot", name: "nightly" } },
});

const SNAPSHOT_FAULTS: readonly Fault[] = [
  snap("snapshot-healthy", undefined, {
    ...classes,
    snapshots: [boundSnapshot({ status: { readyToUse: true, restoreSize: "1Gi" } })],
    snapshotContents: [content({ status: { readyToUse: true, snapshotHandle: "snap-1" } })],
  }),
  snap("snapshot-source-missing", "snapshot-source-missing", {
    ...classes,
    claims: [],
    snapshots: [snapshot()],
  }),
  snap("snapshot-source-unbound", "snapshot-source-unbound", {
    ...classes,
    claims: [pendingClaim()],
    volumes: [],
    snapshots: [snapshot()],
  }),
  snap("snapshot-source-not-csi", "snapshot-source-not-csi", {
    ...classes,
    volumes: [volume("pv-1", { spec: { csi: undefined, hostPath: { path: "/data" } } })],
    snapshots: [snapshot()],
  }),
  snap("snapshot-class-missing", "snapshot-class-missing", {
    snapshotClasses: [snapshotClass("other")],
    snapshots: [snapshot()],
  }),
  snap("snapshot-class-no-default", "snapshot-class-no-default", {
    ...classes,
    snapshots: [snapshot({ spec: { volumeSnapshotClassName: undefined } })],
  }),
  snap("snapshot-class-wrong-driver", "snapshot-class-wrong-driver", {
    snapshotClasses: [snapshotClass("snaps", { driver: "other.example.com" })],
    snapshots: [snapshot()],
  }),
  snap("snapshot-content-missing", "snapshot-content-missing", {
    snapshots: [
      snapshot({
        spec: { source: { volumeSnapshotContentName: "imported" }, volumeSnapshotClassName: undefined },
      }),
    ],
  }),
  snap("snapshot-content-elsewhere", "snapshot-content-elsewhere", {
    snapshots: [boundSnapshot()],
    snapshotContents: [content({ spec: { volumeSnapshotRef: { namespace: "shop", name: "weekly" } } })],
  }),
  snap("snapshot-controller-silent", "snapshot-controller-silent", { ...classes, snapshots: [snapshot()] }),
  snap("snapshotter-silent", "snapshotter-silent", {
    ...classes,
    snapshots: [boundSnapshot()],
    snapshotContents: [content()],
  }),
  snap("snapshot-failed", "snapshot-failed", {
    ...classes,
    snapshots: [
      boundSnapshot({
        status: {
          error: {
            message:
              "Failed to check and update snapshot content: rpc error: code = ResourceExhausted desc = snapshot limit reached",
            time: ago(45),
          },
        },
      }),
    ],
    snapshotContents: [content()],
  }),
  snap("snapshot-under-way", "snapshot-under-way", {
    ...classes,
    snapshots: [boundSnapshot()],
    snapshotContents: [content({ status: { snapshotHandle: "snap-1", readyToUse: false } })],
  }),
  snap("snapshot-restoring", "snapshot-restoring", {
    ...classes,
    claims: [claim(), restored],
    snapshots: [boundSnapshot({ ...leaving, status: { readyToUse: true } })],
    snapshotContents: [content()],
  }),
  snap("snapshot-deleting", "snapshot-deleting", {
    ...classes,
    snapshots: [boundSnapshot(leaving)],
    snapshotContents: [
      content({
        ...leaving,
        status: { error: { message: "rpc error: code = FailedPrecondition desc = snapshot is in use" } },
      }),
    ],
  }),
];

const aboutClass = asking(CLASS);
const marked = {
  metadata: {
    name: "fast",
    annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
    creationTimestamp: ago(86_400),
  },
};
const alsoMarked = { metadata: { ...marked.metadata, name: "slow", creationTimestamp: ago(600) } };
const unboundOnly = { claims: [pendingClaim()], volumes: [], attachments: [], pods: [] };

const CLASS_FAULTS: readonly Fault[] = [
  aboutClass("storageclass-healthy", undefined, {
    storageClasses: [storageClass("fast", { ...marked, volumeBindingMode: "WaitForFirstConsumer" })],
    claims: [claim(), pendingClaim({ metadata: { name: "later" } })],
  }),
  aboutClass("storageclass-gone", "class-gone", { ...unboundOnly, storageClasses: [storageClass("slow")] }),
  aboutClass("storageclass-provisioner-unknown", "class-provisioner-unknown", {
    ...unboundOnly,
    storageClasses: [storageClass("fast", { provisioner: "csi.exmaple.com" })],
  }),
  aboutClass("storageclass-driver-nowhere", "class-driver-nowhere", {
    csiNodes: [csiNode("node-a", []), csiNode("node-b", [])],
  }),
  aboutClass("storageclass-topology-unmatched", "class-topology-unmatched", {
    storageClasses: [
      storageClass("fast", {
        allowedTopologies: [
          { matchLabelExpressions: [{ key: "topology.kubernetes.io/zone", values: ["eu-1a", "eu-1b"] }] },
        ],
      }),
    ],
  }),
  aboutClass("storageclass-two-defaults", "class-two-defaults", {
    storageClasses: [storageClass("fast", marked), storageClass("slow", alsoMarked)],
  }),
  aboutClass("storageclass-no-default", "class-no-default", {
    claims: [claim(), pendingClaim({ metadata: { name: "logs" }, spec: { storageClassName: undefined } })],
  }),
  aboutClass("storageclass-claim-fails", "provision-failed", {
    ...unboundOnly,
    events: [claimEvent("ProvisioningFailed", "rpc error: code = ResourceExhausted desc = pool is full")],
    claims: [
      pendingClaim({ metadata: { annotations: { "volume.kubernetes.io/storage-provisioner": DRIVER } } }),
    ],
  }),
];

const aboutDriver = asking(DRIVER_SUBJECT);

const DRIVER_FAULTS: readonly Fault[] = [
  aboutDriver("csidriver-healthy", undefined, { pods: [runningPod()] }),
  aboutDriver("csidriver-nowhere", "driver-nowhere", {
    csiNodes: [csiNode("node-a", []), csiNode("node-b", [])],
  }),
  aboutDriver("csidriver-not-on-one-node", "driver-not-registered", {
    csiNodes: [csiNode("node-a", []), csiNode("node-b")],
  }),
  aboutDriver("csidriver-attacher-silent", "driver-attacher-silent", {
    attachments: [attachment("node-a", { metadata: { finalizers: [] }, status: { attached: false } })],
    nodes: [node(), node("node-b")],
  }),
  aboutDriver("csidriver-refuses-a-claim", "provision-failed", {
    pods: [],
    claims: [pendingClaim()],
    ...{ volumes: [], attachments: [], nodes: [node(), node("node-b")] },
    events: [claimEvent("ProvisioningFailed", "rpc error: code = InvalidArgument desc = no such type")],
  }),
  aboutDriver("csidriver-without-object", "mount-pending", { csiDrivers: [], pods: [pod()] }),
];

export const KIND_FAULTS: readonly Fault[] = [
  ...ATTACHMENT_FAULTS,
  ...SET_FAULTS,
  ...DEPLOYMENT_FAULTS,
  ...SNAPSHOT_FAULTS,
  ...CLASS_FAULTS,
  ...DRIVER_FAULTS,
];
