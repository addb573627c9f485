import type { Subject } from "./explain.ts";
import type { ClusterObjects } from "./objects.ts";
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
  podEvent,
  runningPod,
  storageClass,
  usingNode,
  volume,
  wait,
} from "./objects.testing.ts";
import { FOREIGN_FAULTS } from "./foreign-faults.testing.ts";
import { KIND_FAULTS } from "./kind-faults.testing.ts";
import { PAGE_FAULTS } from "./page-faults.testing.ts";
import { UNREHEARSED_FAULTS } from "./unrehearsed-faults.testing.ts";
import type { Reason } from "./reasons/reasons.ts";

/** One cluster in which one thing is wrong, and what has to be named as its cause. */
export interface Fault {
  readonly name: string;
  /** Undefined for a healthy one. */
  readonly reason: Reason | undefined;
  readonly subject: Subject;
  readonly objects: ClusterObjects;
}

const POD: Subject = { kind: "pod", name: "web", namespace: "shop" };
const CLAIM: Subject = { kind: "pvc", name: "data", namespace: "shop" };
const PV: Subject = { kind: "pv", name: "pv-1", namespace: "" };
const nodeSubject = (name: string): Subject => ({ kind: "node", name, namespace: "" });

function fault(
  name: string,
  reason: Reason | undefined,
  changes: Partial<ClusterObjects>,
  subject: Subject = POD,
): Fault {
  return { name, reason, subject, objects: cluster(changes) };
}

const nobody = { volumes: [], attachments: [] };

const CLAIM_FAULTS: readonly Fault[] = [
  fault("claim-missing", "claim-missing", { claims: [], ...nobody }),
  fault("claim-pending-no-class", "claim-no-class", {
    claims: [pendingClaim({ spec: { storageClassName: undefined } })],
    storageClasses: [],
    ...nobody,
  }),
  fault("claim-pending-static", "claim-static-unmatched", {
    claims: [pendingClaim({ spec: { storageClassName: "" } })],
    events: [
      claimEvent(
        "FailedBinding",
        "no persistent volumes available for this claim and no storage class is set",
      ),
    ],
    ...nobody,
  }),
  fault("claim-pending-class-missing", "class-missing", {
    claims: [pendingClaim()],
    storageClasses: [],
    events: [claimEvent("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')],
    ...nobody,
  }),
  fault(
    "claim-pending-first-consumer",
    "claim-waits-for-pod",
    {
      pods: [],
      claims: [pendingClaim()],
      storageClasses: [storageClass("fast", { volumeBindingMode: "WaitForFirstConsumer" })],
      ...nobody,
    },
    CLAIM,
  ),
  fault("claim-pending-node-name-set", "claim-bypasses-scheduler", {
    claims: [pendingClaim()],
    storageClasses: [storageClass("fast", { volumeBindingMode: "WaitForFirstConsumer" })],
    ...nobody,
  }),
  fault("claim-pending-provisioner-error", "provision-failed", {
    claims: [
      pendingClaim({ metadata: { annotations: { "volume.kubernetes.io/storage-provisioner": DRIVER } } }),
    ],
    events: [claimEvent("ProvisioningFailed", "rpc error: code = ResourceExhausted desc = pool is full")],
    ...nobody,
  }),
  fault("claim-pending-provisioner-silent", "provisioner-silent", { claims: [pendingClaim()], ...nobody }),
  fault("claim-lost", "claim-lost", { claims: [claim("data", { status: { phase: "Lost" } })], ...nobody }),
  fault("claim-deleting", "claim-deleting", {
    pods: [pod(), runningPod("old")],
    claims: [
      claim("data", {
        metadata: { deletionTimestamp: ago(60), finalizers: ["kubernetes.io/pvc-protection"] },
      }),
    ],
  }),
  fault("claim-not-owned", "claim-not-owned", {
    pods: [pod("web", { spec: { volumes: [{ name: "data", ephemeral: {} }] } })],
    claims: [claim("web-data")],
  }),
  fault("claim-access-mode", "access-mode-unmet", {
    claims: [pendingClaim({ spec: { volumeName: "pv-1", accessModes: ["ReadWriteMany"] } })],
    volumes: [volume("pv-1", { spec: { claimRef: undefined }, status: { phase: "Available" } })],
    attachments: [],
  }),
  fault("claim-volume-bound-elsewhere", "volume-bound-elsewhere", {
    claims: [pendingClaim({ spec: { volumeName: "pv-1" } })],
    volumes: [volume("pv-1", { spec: { claimRef: { namespace: "shop", name: "other", uid: "uid-other" } } })],
    attachments: [],
  }),
  fault("claim-volume-released", "volume-released", {
    claims: [pendingClaim({ spec: { volumeName: "pv-1" } })],
    volumes: [
      volume("pv-1", {
        spec: {
          claimRef: { namespace: "shop", name: "data", uid: "uid-before" },
          persistentVolumeReclaimPolicy: "Retain",
        },
        status: { phase: "Released" },
      }),
    ],
    attachments: [],
  }),
  fault("claim-block-as-files", "volume-mode-mismatch", {
    claims: [claim("data", { spec: { volumeMode: "Block" } })],
  }),
];

const VOLUME_FAULTS: readonly Fault[] = [
  fault("volume-missing", "volume-missing", { ...nobody }),
  fault("volume-not-bound-back", "volume-not-bound-back", {
    volumes: [volume("pv-1", { spec: { claimRef: { namespace: "shop", name: "data", uid: "uid-before" } } })],
  }),
  fault(
    "volume-released",
    "volume-released",
    {
      pods: [],
      claims: [],
      volumes: [
        volume("pv-1", { spec: { persistentVolumeReclaimPolicy: "Retain" }, status: { phase: "Released" } }),
      ],
      attachments: [],
    },
    PV,
  ),
  fault(
    "volume-failed",
    "volume-failed",
    {
      pods: [],
      claims: [],
      volumes: [
        volume("pv-1", { status: { phase: "Failed", message: "delete refused: volume has snapshots" } }),
      ],
      attachments: [],
    },
    PV,
  ),
  fault(
    "volume-deleting-attached",
    "volume-deleting",
    {
      pods: [],
      claims: [],
      volumes: [
        volume("pv-1", {
          metadata: { deletionTimestamp: ago(50), finalizers: ["kubernetes.io/pv-protection"] },
        }),
      ],
    },
    PV,
  ),
  fault("volume-node-affinity", "volume-node-conflict", {
    volumes: [
      volume("pv-1", {
        spec: {
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: "topology.kubernetes.io/zone", operator: "In", values: ["b"] }] },
              ],
            },
          },
        },
      }),
    ],
    attachments: [],
  }),
  fault("volume-untranslatable", "untranslatable", {
    volumes: [volume("pv-1", { spec: { csi: undefined, azureFile: {} } })],
    attachments: [],
  }),
];

const homeless = { spec: { nodeName: undefined } };
const unscheduled = (message: string): Partial<ClusterObjects> => ({
  pods: [pod("web", homeless)],
  attachments: [],
  events: [podEvent("FailedScheduling", message)],
});

const SCHEDULING_FAULTS: readonly Fault[] = [
  fault(
    "unschedulable-limits",
    "unschedulable-limit",
    unscheduled("0/2 nodes are available: 2 node(s) exceed max volume count."),
  ),
  fault(
    "unschedulable-taints",
    "unschedulable-taint",
    unscheduled("0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: db}."),
  ),
  fault(
    "unschedulable-volume-affinity",
    "unschedulable-volume",
    unscheduled("0/2 nodes are available: 2 node(s) had volume node affinity conflict."),
  ),
  fault("unschedulable-node-affinity", "unschedulable-affinity", {
    ...unscheduled("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."),
    pods: [pod("web", { spec: { ...homeless.spec, nodeSelector: { disk: "ssd" } } })],
  }),
  fault("unschedulable-cpu", "unschedulable", unscheduled("0/2 nodes are available: 2 Insufficient cpu.")),
  fault("unschedulable-first-consumer", "unschedulable-taint", {
    ...unscheduled("0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: db}."),
    claims: [pendingClaim()],
    volumes: [],
    storageClasses: [storageClass("fast", { volumeBindingMode: "WaitForFirstConsumer" })],
  }),
  fault("unschedulable-condition-newer", "unschedulable-affinity", {
    ...unscheduled("0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."),
    pods: [
      pod("web", {
        spec: { ...homeless.spec, nodeSelector: { disk: "ssd" } },
        status: {
          conditions: [
            {
              type: "PodScheduled",
              status: "False",
              reason: "Unschedulable",
              message: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            },
          ],
        },
      }),
    ],
  }),
  fault("scheduler-silent", "scheduler-silent", { pods: [pod("web", homeless)], attachments: [] }),
  fault("scheduling-gated", "scheduling-gated", {
    pods: [pod("web", { spec: { ...homeless.spec, schedulingGates: [{ name: "example.com/quota" }] } })],
    attachments: [],
  }),
  fault("read-write-once-pod", "held-by-other-pod", {
    pods: [pod(), runningPod("first")],
    claims: [claim("data", { spec: { accessModes: ["ReadWriteOncePod"] } })],
  }),
];

const elsewhere = attachment("node-b");
const onB = { spec: { nodeName: "node-b" } };

const HOLDER_FAULTS: readonly Fault[] = [
  fault("held-by-running-pod", "held-by-running-pod", {
    pods: [pod(), runningPod("old", onB)],
    attachments: [elsewhere],
    nodes: [node(), usingNode("node-b")],
  }),
  fault("held-by-terminating-pod", "held-by-terminating-pod", {
    pods: [pod(), runningPod("old", { ...onB, metadata: { deletionTimestamp: ago(-25) } })],
    attachments: [elsewhere],
    nodes: [node(), usingNode("node-b")],
  }),
  fault("held-by-not-ready-node-with-pod", "held-by-not-ready-node", {
    pods: [pod(), runningPod("old", { ...onB, metadata: { deletionTimestamp: ago(30) } })],
    attachments: [elsewhere],
    nodes: [node(), usingNode("node-b", { ready: "Unknown" })],
  }),
  fault("held-by-not-ready-node", "held-by-not-ready-node", {
    attachments: [elsewhere],
    nodes: [node(), usingNode("node-b", { ready: "Unknown" })],
  }),
  fault("held-by-not-ready-node-known-time", "held-by-not-ready-node", {
    attachments: [elsewhere],
    nodes: [node(), usingNode("node-b", { ready: "Unknown" })],
    waits: [
      wait({
        process: "controller",
        node: "node-b",
        reason: "still-mounted",
        message: "node node-b may still use it",
        sinceMs: Date.parse(ago(12)),
        untilMs: Date.parse(ago(-348)),
      }),
    ],
  }),
  fault("held-by-fenced-node", "held-by-fenced-node", {
    pods: [pod(), runningPod("old", onB)],
    attachments: [elsewhere],
    nodes: [
      node(),
      usingNode("node-b", {
        ready: "Unknown",
        spec: {
          taints: [{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }],
        },
      }),
    ],
  }),
  fault("held-by-missing-node", "held-by-missing-node", { attachments: [elsewhere], nodes: [node()] }),
  fault("holder-detach-error", "holder-detach-failed", {
    attachments: [
      attachment("node-b", {
        metadata: { deletionTimestamp: ago(100) },
        status: {
          detachError: { message: "rpc error: code = Internal desc = device is busy", time: ago(15) },
        },
      }),
    ],
    nodes: [node(), node("node-b")],
  }),
  fault("holder-detaching", "holder-detaching", {
    attachments: [attachment("node-b", { metadata: { deletionTimestamp: ago(8) } })],
    nodes: [node(), node("node-b")],
  }),
  fault("holder-still-in-use", "holder-still-mounted", {
    attachments: [elsewhere],
    nodes: [node(), usingNode("node-b")],
  }),
  fault("holder-not-released", "holder-not-released", {
    attachments: [elsewhere],
    nodes: [node(), node("node-b")],
  }),
];

const unattached = (parts: Parameters<typeof attachment>[1]) => [
  attachment("node-a", { ...parts, status: { attached: false, ...parts?.status } }),
];
const attachError = (message: string): Partial<ClusterObjects> => ({
  attachments: unattached({ status: { attachError: { message, time: ago(30) } } }),
  nodes: [node()],
});

const ATTACHMENT_FAULTS: readonly Fault[] = [
  fault("node-missing", "node-missing", { nodes: [], attachments: [] }),
  fault("node-not-ready", "node-not-ready", { nodes: [usingNode("node-a", { ready: "Unknown" })] }),
  fault("node-not-managed", "node-not-managed", {
    nodes: [node("node-a", { metadata: { annotations: {} } })],
    attachments: [],
  }),
  fault("csinode-missing", "csinode-missing", { csiNodes: [], attachments: [], nodes: [node()] }),
  fault("driver-not-in-csinode", "driver-not-registered", {
    csiNodes: [csiNode("node-a", [{ name: "other.example.com" }])],
    attachments: [],
    nodes: [node()],
    events: [podEvent("FailedAttachVolume", "CSINode node-a does not contain driver csi.example.com")],
  }),
  fault("attach-limit", "attach-limit", {
    csiNodes: [csiNode("node-a", [{ name: DRIVER, allocatable: { count: 1 } }])],
    attachments: [
      attachment("node-a", {
        metadata: { name: "csi-first" },
        spec: { source: { persistentVolumeName: "pv-2" } },
      }),
    ],
    nodes: [node()],
  }),
  fault("attachment-not-created", "attachment-not-created", { attachments: [], nodes: [node()] }),
  fault("controller-frozen", "controller-frozen", {
    attachments: [],
    nodes: [node()],
    waits: [
      wait({
        process: "controller",
        reason: "stale-cache",
        frozen: true,
        message: "the API server has said nothing for 3m",
      }),
    ],
  }),
  fault("controller-backoff", "controller-waits", {
    attachments: [],
    nodes: [node()],
    waits: [
      wait({
        process: "controller",
        reason: "backoff",
        message: "creating its VolumeAttachment failed: quota exceeded",
        untilMs: Date.parse(ago(-16)),
      }),
    ],
  }),
  fault("attacher-missing", "attacher-missing", {
    attachments: unattached({ metadata: { finalizers: [] } }),
    nodes: [node()],
  }),
  fault("driver-attaching", "driver-attaching", { attachments: unattached({}), nodes: [node()] }),
  fault("attach-error", "attach-failed", attachError("rpc error: code = Internal desc = backend says no")),
  fault(
    "attach-error-exhausted",
    "attach-exhausted",
    attachError("rpc error: code = ResourceExhausted desc = 16 disks at most"),
  ),
  fault(
    "attach-error-denied",
    "attach-denied",
    attachError("rpc error: code = PermissionDenied desc = role lacks AttachVolume"),
  ),
  fault("attachment-deleting", "attachment-deleting", {
    attachments: [attachment("node-a", { metadata: { deletionTimestamp: ago(30) } })],
    nodes: [node()],
  }),
  fault("attached-not-in-status", "node-status", { nodes: [node()] }),
  fault("attached-not-in-use", "agent-silent", {
    nodes: [usingNode("node-a", { status: { volumesInUse: [] } })],
  }),
];

const mountError = (message: string): Partial<ClusterObjects> => ({
  events: [podEvent("FailedMount", message)],
});
const setUp = (cause: string) => mountError(`MountVolume.SetUp failed for volume "pv-1" : ${cause}`);
const device = (cause: string) => mountError(`MountVolume.MountDevice failed for volume "pv-1" : ${cause}`);

const MOUNT_FAULTS: readonly Fault[] = [
  fault(
    "mount-driver-not-registered",
    "mount-driver-not-registered",
    device(
      `kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name ${DRIVER} not found in the list of registered CSI drivers`,
    ),
  ),
  fault("mount-secret-missing", "secret-missing", {
    pods: [pod("web", { spec: { volumes: [{ name: "keys", secret: { secretName: "tls" } }] } })],
    ...mountError('MountVolume.SetUp failed for volume "keys" : secret "tls" not found'),
  }),
  fault("mount-config-map-missing", "config-map-missing", {
    pods: [pod("web", { spec: { volumes: [{ name: "conf", configMap: { name: "app" } }] } })],
    ...mountError('MountVolume.SetUp failed for volume "conf" : configmap "app" not found'),
  }),
  fault(
    "mount-wrong-fs-type",
    "wrong-fs-type",
    device(
      "rpc error: code = Internal desc = mount failed: wrong fs type, bad option, bad superblock on /dev/sdb",
    ),
  ),
  fault(
    "mount-fsck",
    "fsck-failed",
    device(
      "rpc error: code = Internal desc = 'fsck' found errors on device /dev/sdb but could not correct them",
    ),
  ),
  fault(
    "mount-permission-denied",
    "mount-denied",
    setUp("rpc error: code = Internal desc = mount.nfs: access denied by server"),
  ),
  fault(
    "mount-timeout",
    "mount-timeout",
    device("rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
  ),
  fault(
    "mount-node-affinity",
    "mount-node-conflict",
    mountError('MountVolume.NodeAffinity check failed for volume "pv-1" : no matching NodeSelectorTerms'),
  ),
  fault("mount-other", "mount-failed", setUp("rpc error: code = Internal desc = something odd")),
  fault("fs-group-slow", "fs-group-slow", {
    events: [
      podEvent(
        "VolumePermissionChangeInProgress",
        "Setting volume ownership for pv-1 is taking longer than expected, processed 300000 files.",
      ),
    ],
  }),
  fault("mount-pending", "mount-pending", {}),
  fault("container-image-missing", "container-waiting", {
    pods: [
      pod("web", {
        status: { containerStatuses: [{ name: "app", state: { waiting: { reason: "ImagePullBackOff" } } }] },
      }),
    ],
  }),
];

const growing = (status: object) => ({
  pods: [runningPod()],
  claims: [claim("data", { spec: { resources: { requests: { storage: "2Gi" } } }, status: { ...status } })],
});

const OTHER_FAULTS: readonly Fault[] = [
  fault(
    "expansion-pending",
    "expand-pending",
    growing({
      conditions: [
        {
          type: "FileSystemResizePending",
          message: "Waiting for user to (re-)start a pod to finish file system resize of volume on node.",
        },
      ],
    }),
    CLAIM,
  ),
  fault(
    "expansion-infeasible",
    "expand-infeasible",
    growing({
      allocatedResourceStatuses: { storage: "ControllerResizeInfeasible" },
      conditions: [{ type: "ControllerResizeError", message: "pool has 512Mi left" }],
    }),
    CLAIM,
  ),
  fault("orphan-no-pod", "attachment-orphaned", { pods: [], nodes: [node()] }, PV),
  fault(
    "orphan-no-volume",
    "attachment-orphaned-unsure",
    { pods: [], claims: [], volumes: [], nodes: [node()] },
    nodeSubject("node-a"),
  ),
  fault("in-use-not-cleared", "still-mounted", { pods: [], nodes: [usingNode()] }, nodeSubject("node-a")),
  fault(
    "finalizer-left",
    "driver-detaching",
    {
      pods: [],
      attachments: [attachment("node-a", { metadata: { deletionTimestamp: ago(3_600) } })],
      nodes: [node()],
    },
    nodeSubject("node-a"),
  ),
  fault(
    "detach-error",
    "detach-failed",
    {
      pods: [],
      attachments: [
        attachment("node-a", {
          metadata: { deletionTimestamp: ago(3_600) },
          status: {
            detachError: { message: "rpc error: code = Internal desc = instance is locked", time: ago(5) },
          },
        }),
      ],
      nodes: [node()],
    },
    nodeSubject("node-a"),
  ),
  fault("node-gone-with-attachments", "held-by-missing-node", { pods: [], nodes: [] }, nodeSubject("node-a")),
  fault("running-on-silent-node", "node-not-ready", {
    pods: [runningPod()],
    nodes: [usingNode("node-a", { ready: "Unknown" })],
  }),
  fault("healthy-pod", undefined, { pods: [runningPod()] }),
  fault("healthy-claim", undefined, { pods: [runningPod()] }, CLAIM),
  fault("healthy-volume", undefined, { pods: [runningPod()] }, PV),
  fault("healthy-node", undefined, { pods: [runningPod()] }, nodeSubject("node-a")),
  fault("unread-classes", "unschedulable-taint", {
    ...unscheduled("0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: db}."),
    claims: [pendingClaim()],
    volumes: [],
    storageClasses: [],
    unread: [{ kind: "storageClasses", right: "list storageclasses.storage.k8s.io", why: "not permitted" }],
  }),
  fault("unread-attachments", "mount-pending", {
    attachments: [],
    unread: [{ kind: "attachments", right: "list volumeattachments.storage.k8s.io", why: "not permitted" }],
  }),
];

export const FAULTS: readonly Fault[] = [
  ...CLAIM_FAULTS,
  ...VOLUME_FAULTS,
  ...SCHEDULING_FAULTS,
  ...HOLDER_FAULTS,
  ...FOREIGN_FAULTS,
  ...ATTACHMENT_FAULTS,
  ...MOUNT_FAULTS,
  ...OTHER_FAULTS,
  ...PAGE_FAULTS,
  ...KIND_FAULTS,
  ...UNREHEARSED_FAULTS,
];
