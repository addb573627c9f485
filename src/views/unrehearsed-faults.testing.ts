import type { Fault } from "./faults.testing.ts";
import {
  ago,
  attachment,
  claim,
  claimEvent,
  cluster,
  csiNode,
  DRIVER,
  event,
  node,
  pendingClaim,
  pod,
  podEvent,
  runningPod,
  storageClass,
  usingNode,
  volume,
} from "./objects.testing.ts";
import type { ClusterObjects } from "./objects.ts";
import type { Reason } from "./reasons/reasons.ts";

/** Faults that operators met and nobody had rehearsed. Each was answered wrongly or by half when it was first met. */

const POD = { kind: "pod", name: "web", namespace: "shop" } as const;
const CLAIM = { kind: "pvc", name: "data", namespace: "shop" } as const;
const PV = { kind: "pv", name: "pv-1", namespace: "" } as const;
const NODE = { kind: "node", name: "node-a", namespace: "" } as const;

function fault(
  name: string,
  reason: Reason | undefined,
  changes: Partial<ClusterObjects>,
  subject: Fault["subject"] = POD,
): Fault {
  return { name, reason, subject, objects: cluster(changes) };
}

const running = { pods: [runningPod()] };
const deleted = (...finalizers: readonly string[]) => ({
  metadata: { deletionTimestamp: ago(50), finalizers },
});
const deletedVolume = volume(
  "pv-1",
  deleted("kubernetes.io/pv-protection", "external-attacher/csi-example-com"),
);
const nothingBound = { volumes: [], attachments: [] };

const GOING_FAULTS: readonly Fault[] = [
  fault("volume-deleted-in-use", "volume-deleted-in-use", { ...running, volumes: [deletedVolume] }),
  fault(
    "volume-deleted-in-use-claim",
    "volume-deleted-in-use",
    { ...running, volumes: [deletedVolume] },
    CLAIM,
  ),
  fault("volume-deleted-in-use-retained", "volume-deleted-in-use", {
    ...running,
    volumes: [
      volume("pv-1", {
        ...deleted("kubernetes.io/pv-protection"),
        spec: { persistentVolumeReclaimPolicy: "Retain" },
      }),
    ],
  }),
  fault("volume-gone-claim-lost", "volume-replaced", {
    ...running,
    volumes: [],
    claims: [claim("data", { status: { phase: "Lost" } })],
  }),
  fault("volume-gone-claim-alone", "volume-missing", { pods: [], ...nothingBound }, CLAIM),
  fault("volume-gone-asked-by-name", "volume-missing", { pods: [], ...nothingBound }, PV),
  fault(
    "volume-terminating-attached",
    "volume-deleting",
    {
      pods: [],
      claims: [],
      volumes: [{ ...deletedVolume, status: { phase: "Released" } }],
      nodes: [node()],
    },
    PV,
  ),
  fault(
    "volume-not-reclaimed",
    "volume-not-reclaimed",
    {
      pods: [],
      claims: [],
      volumes: [volume("pv-1", { status: { phase: "Released" } })],
      attachments: [],
      nodes: [node()],
    },
    PV,
  ),
  fault("claim-deleted-in-use", "claim-deleted-in-use", {
    ...running,
    claims: [claim("data", deleted("kubernetes.io/pvc-protection"))],
  }),
  fault(
    "claim-kept-by-snapshot",
    "claim-finalizers",
    {
      pods: [],
      claims: [claim("data", deleted("snapshot.storage.kubernetes.io/pvc-as-source-protection"))],
      attachments: [],
    },
    CLAIM,
  ),
  fault(
    "claim-kept-by-stranger",
    "claim-finalizers",
    { pods: [], claims: [claim("data", deleted("backup.example.com/hold"))], attachments: [] },
    CLAIM,
  ),
  fault(
    "driver-uninstalled",
    "driver-uninstalled",
    {
      pods: [],
      attachments: [attachment("node-a", { metadata: { deletionTimestamp: ago(300) } })],
      nodes: [node()],
      csiNodes: [csiNode("node-a", [])],
      csiDrivers: [],
    },
    NODE,
  ),
  fault(
    "driver-uninstalled-holder",
    "driver-uninstalled",
    {
      attachments: [attachment("node-b", { metadata: { deletionTimestamp: ago(300) } })],
      nodes: [node(), node("node-b")],
      csiNodes: [csiNode("node-a", []), csiNode("node-b", [])],
      csiDrivers: [],
      unread: [],
    },
    { kind: "node", name: "node-b", namespace: "" },
  ),
];

const LISTED_FAULTS: readonly Fault[] = [
  fault("running-without-attachment", "attachment-gone", { ...running, attachments: [] }),
  fault("running-detached", "detached-in-use", {
    ...running,
    attachments: [attachment("node-a", { status: { attached: false } })],
  }),
  fault("running-detaching", "detaching-in-use", {
    ...running,
    attachments: [attachment("node-a", { metadata: { deletionTimestamp: ago(90) } })],
  }),
  fault("listed-not-attached-volume", "node-lists-detached", { pods: [], attachments: [] }, PV),
  fault("listed-not-attached-claim", "node-lists-detached", { pods: [], attachments: [] }, CLAIM),
  fault(
    "listed-not-attached-node",
    "node-lists-detached",
    {
      pods: [],
      attachments: [],
      nodes: [usingNode("node-a", { status: { volumesInUse: [] } })],
    },
    NODE,
  ),
  fault("running-not-listed", "contradiction", { ...running, nodes: [node()] }),
  fault("running-not-in-use", "contradiction", {
    ...running,
    nodes: [usingNode("node-a", { status: { volumesInUse: [] } })],
  }),
  fault("running-not-mounted-by-page", "contradiction", {
    ...running,
    nodePages: [{ node: "node-a", synced: true, mounts: [] }],
  }),
  fault(
    "foreign-attachment-shared-volume",
    "foreign-attachment",
    {
      ...running,
      volumes: [volume("pv-1", { spec: { accessModes: ["ReadWriteMany"] } })],
      attachments: [attachment(), attachment("node-b", { metadata: { name: "made-by-hand" } })],
    },
    PV,
  ),
  fault("foreign-attachment-other-driver", "foreign-attachment", {
    ...running,
    attachments: [
      attachment(),
      attachment("node-a", { metadata: { name: "made-by-hand" }, spec: { attacher: "other.example.com" } }),
    ],
  }),
  fault("expansion-pending-before-start", "mount-pending", {
    claims: [claim("data", { spec: { resources: { requests: { storage: "2Gi" } } } })],
    nodes: [usingNode()],
  }),
  fault("two-volumes-one-handle", "volume-handle-shared", {
    ...running,
    volumes: [volume(), volume("pv-2", { spec: { claimRef: undefined }, status: { phase: "Available" } })],
  }),
];

const homeless = { spec: { nodeName: undefined } };
const cordoned = { spec: { unschedulable: true } };
const unscheduled = (message: string): Partial<ClusterObjects> => ({
  pods: [pod("web", homeless)],
  attachments: [],
  events: [podEvent("FailedScheduling", message)],
});
const onlyOn = (name: string) => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [
        { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [name] }] },
      ],
    },
  },
});

const ssd = { metadata: { labels: { disk: "ssd" } } };
const selecting = pod("web", { spec: { ...homeless.spec, nodeSelector: { disk: "ssd" } } });
const outOfService = {
  taints: [{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }],
};
const UNSELECTED = "1 node(s) didn't match Pod's node affinity/selector";

const PLACING_FAULTS: readonly Fault[] = [
  fault("only-node-cordoned", "unschedulable-cordoned", {
    ...unscheduled("0/1 nodes are available: 1 node(s) were unschedulable."),
    nodes: [node("node-a", cordoned)],
  }),
  fault("volume-node-cordoned", "unschedulable-cordoned", {
    ...unscheduled(
      "0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 node(s) were unschedulable.",
    ),
    volumes: [volume("pv-1", { spec: onlyOn("node-a") })],
    nodes: [node("node-a", cordoned), node("node-b")],
  }),
  fault("selected-node-cordoned", "unschedulable-cordoned", {
    ...unscheduled(
      "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: }, 1 node(s) were unschedulable, 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    ),
    pods: [selecting],
    nodes: [
      node("node-a", { ...cordoned, ...ssd }),
      node("node-b"),
      node("node-c", { ...ssd, spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] } }),
    ],
  }),
  fault("selected-node-cordoned-and-tainted", "unschedulable-taint", {
    ...unscheduled(`0/2 nodes are available: 1 node(s) were unschedulable, ${UNSELECTED}.`),
    pods: [selecting],
    nodes: [node("node-a", { ...ssd, spec: { ...cordoned.spec, ...outOfService } }), node("node-b")],
  }),
  fault("selected-node-cordoned-and-silent", "unschedulable-cordoned", {
    ...unscheduled(`0/2 nodes are available: 1 node(s) were unschedulable, ${UNSELECTED}.`),
    pods: [selecting],
    nodes: [node("node-a", { ...ssd, ...cordoned, ready: "Unknown" }), node("node-b")],
  }),
  fault("other-nodes-cordoned-and-tainted", "unschedulable-affinity", {
    ...unscheduled(
      `0/3 nodes are available: 1 node(s) had untolerated taint {gpu: }, 1 node(s) were unschedulable, ${UNSELECTED}.`,
    ),
    pods: [selecting],
    nodes: [
      node("node-a", cordoned),
      node("node-b"),
      node("node-c", { spec: { taints: [{ key: "gpu", effect: "NoSchedule" }] } }),
    ],
  }),
  fault("selected-node-not-of-volume", "unschedulable-volume", {
    ...unscheduled(`0/2 nodes are available: 1 node(s) were unschedulable, ${UNSELECTED}.`),
    pods: [selecting],
    volumes: [volume("pv-1", { spec: onlyOn("node-b") })],
    nodes: [node("node-a", { ...ssd, ...cordoned }), node("node-b")],
  }),
  fault("selected-node-is-new", "unschedulable", {
    ...unscheduled("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."),
    pods: [selecting],
    nodes: [node("node-a", ssd), node("node-b")],
  }),
  fault("selected-node-full", "unschedulable", {
    ...unscheduled(
      "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match Pod's node affinity/selector.",
    ),
    nodes: [node("node-a"), node("node-b")],
  }),
  fault("one-node-cordoned", "unschedulable", {
    ...unscheduled("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."),
    nodes: [node("node-a", cordoned), node("node-b")],
  }),
  fault("named-volume-mismatch-unread", "claim-volume-unfit", {
    pods: [pod("web", homeless)],
    claims: [pendingClaim({ spec: { volumeName: "pv-1", storageClassName: "" } })],
    ...{ volumes: [], attachments: [] },
    unread: [{ kind: "volumes", right: "list persistentvolumes", why: "forbidden" }],
    events: [
      claimEvent("VolumeMismatch", 'Cannot bind to requested volume "pv-1": requested PV is too small'),
    ],
  }),
  fault("selected-node-missing", "selected-node-missing", {
    pods: [pod("web", homeless)],
    claims: [
      pendingClaim({ metadata: { annotations: { "volume.kubernetes.io/selected-node": "node-gone" } } }),
    ],
    storageClasses: [storageClass("fast", { volumeBindingMode: "WaitForFirstConsumer" })],
    events: [claimEvent("ProvisioningFailed", 'failed to get target node: node "node-gone" not found')],
    ...nothingBound,
  }),
];

const size = (storage: string) => ({ resources: { requests: { storage } } });
const free = (name: string, storage: string, storageClassName?: string) =>
  volume(name, {
    spec: { claimRef: undefined, capacity: { storage }, storageClassName },
    status: { phase: "Available" },
  });

const BINDING_FAULTS: readonly Fault[] = [
  fault("static-volume-too-small", "claim-volume-unfit", {
    claims: [pendingClaim({ spec: { storageClassName: "by-hand", ...size("10Gi") } })],
    volumes: [free("pv-1", "1Gi", "by-hand")],
    attachments: [],
  }),
  fault("static-volume-without-class", "claim-volume-unfit", {
    claims: [pendingClaim({ spec: { storageClassName: "by-hand", ...size("10Gi") } })],
    volumes: [
      free("pv-small", "1Gi", "by-hand"),
      volume("pv-1", {
        spec: { claimRef: { namespace: "shop", name: "data" }, capacity: { storage: "20Gi" } },
        status: { phase: "Available" },
      }),
    ],
    attachments: [],
  }),
  fault("static-volume-named-too-small", "claim-volume-unfit", {
    claims: [pendingClaim({ spec: { storageClassName: "", volumeName: "pv-1", ...size("10Gi") } })],
    volumes: [free("pv-1", "1Gi")],
    attachments: [],
  }),
  fault("static-volume-nobody-binds", "binder-silent", {
    claims: [pendingClaim({ spec: { storageClassName: "", volumeName: "pv-1" } })],
    volumes: [free("pv-1", "1Gi", "")],
    attachments: [],
  }),
  fault("static-class-without-provisioner", "claim-static-unmatched", {
    claims: [pendingClaim()],
    storageClasses: [storageClass("fast", { provisioner: "kubernetes.io/no-provisioner" })],
    ...nothingBound,
  }),
  fault("class-missing-others-there", "class-missing", {
    claims: [pendingClaim({ spec: { storageClassName: "fsat" } })],
    storageClasses: [storageClass("fast"), storageClass("slow")],
    ...nothingBound,
  }),
  fault("claim-in-other-namespace", "claim-missing", {
    claims: [claim("data", { metadata: { namespace: "storage" } })],
    ...nothingBound,
  }),
];

const device = (cause: string): Partial<ClusterObjects> => ({
  events: [podEvent("FailedMount", `MountVolume.MountDevice failed for volume "pv-1" : ${cause}`)],
});
const LONG_PATH = `/var/lib/kubelet/plugins/kubernetes.io/csi/${DRIVER}/${"0123456789abcdef".repeat(16)}/globalmount`;

const MOUNTING_FAULTS: readonly Fault[] = [
  fault(
    "mount-unknown-file-system",
    "fs-unsupported",
    device(
      `rpc error: code = Internal desc = mount failed: mount: ${LONG_PATH}: unknown filesystem type 'bcachefs'.`,
    ),
  ),
  fault(
    "mount-protocol-unsupported",
    "fs-unsupported",
    device(
      `rpc error: code = Internal desc = mount -t nfs4 server:/x ${LONG_PATH}: mount.nfs4: Protocol not supported`,
    ),
  ),
  fault(
    "mount-helper-missing",
    "fs-unsupported",
    device(
      `rpc error: code = Internal desc = mount: ${LONG_PATH}: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program.`,
    ),
  ),
  fault("mount-secret-other-namespace", "secret-missing", {
    volumes: [
      volume("pv-1", {
        spec: {
          csi: {
            driver: DRIVER,
            volumeHandle: "vol-1",
            nodeStageSecretRef: { namespace: "storage-system", name: "ceph-user" },
          },
        },
      }),
    ],
    ...device('failed to get secret: secrets "ceph-user" not found'),
  }),
  fault("flex-volume-driver-missing", "mount-plugin-missing", {
    pods: [pod("web", { spec: { volumes: [{ name: "data", flexVolume: { driver: "example.com/lvm" } }] } })],
    events: [
      podEvent(
        "FailedMount",
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: no volume plugin matched",
      ),
    ],
  }),
  fault("pod-not-ended", "pod-not-ended", {
    pods: [runningPod("web", { metadata: { deletionTimestamp: ago(900) } })],
  }),
  fault("pod-kept-by-finalizer", "pod-not-ended", {
    pods: [
      runningPod("web", { metadata: { deletionTimestamp: ago(900), finalizers: ["example.com/drain"] } }),
    ],
  }),
  fault("running-container-crashes", "container-waiting", {
    pods: [
      runningPod("web", {
        status: {
          containerStatuses: [
            { name: "app", state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 5m0s" } } },
          ],
        },
      }),
    ],
  }),
  fault(
    "delete-of-disk-fails",
    "volume-deleting",
    {
      pods: [],
      claims: [],
      volumes: [
        volume("pv-1", {
          ...deleted("external-provisioner.volume.kubernetes.io/finalizer"),
          status: { phase: "Released" },
        }),
      ],
      attachments: [],
      nodes: [node()],
      events: [
        {
          ...event(["PersistentVolume", "pv-1"], "VolumeFailedDelete", "disk has snapshots"),
        },
      ],
    },
    PV,
  ),
];

const unattached = (message: string) => ({
  attachments: [
    attachment("node-a", { status: { attached: false, attachError: { message, time: ago(30) } } }),
  ],
  nodes: [node()],
});
const containerSays = (reason: string, message: string) => ({
  containerStatuses: [{ name: "app", state: { waiting: { reason, message } } }],
});

/** From what operators of other storage systems ask about. */
const SECOND_LOOK: readonly Fault[] = [
  fault(
    "attached-without-kubernetes",
    "attached-outside",
    unattached(
      "rpc error: code = Internal desc = volume is already attached to a server, please detach it first",
    ),
  ),
  fault("controller-says-why", "attach-refused", {
    attachments: [],
    nodes: [node()],
    events: [
      podEvent(
        "FailedAttachVolume",
        'AttachVolume.Attach failed for volume "pv-1" : volumeattachments.storage.k8s.io is forbidden',
      ),
    ],
  }),
  fault("controller-says-multi-attach-no-more", "attachment-not-created", {
    attachments: [],
    nodes: [node()],
    events: [podEvent("FailedAttachVolume", 'Multi-Attach error for volume "pv-1" Volume is already used')],
  }),
  fault("sub-path-missing", "container-volume", {
    pods: [
      pod("web", {
        status: containerSays(
          "CreateContainerConfigError",
          'failed to create subPath directory for volumeMount "data"',
        ),
      }),
    ],
  }),
  fault("mounted-directory-gone", "container-volume", {
    pods: [
      runningPod("web", {
        status: containerSays(
          "CreateContainerError",
          "stat /var/lib/kubelet/pods/x/volumes/kubernetes.io~csi/pv-1/mount: no such file or directory",
        ),
      }),
    ],
  }),
  fault("ephemeral-claim-not-made", "claim-not-made", {
    pods: [pod("web", { spec: { volumes: [{ name: "scratch", ephemeral: {} }] } })],
    claims: [],
    ...nothingBound,
  }),
  fault("local-disk-of-a-node-that-is-gone", "unschedulable-volume", {
    ...unscheduled("0/2 nodes are available: 2 node(s) had volume node affinity conflict."),
    volumes: [volume("pv-1", { spec: onlyOn("node-gone") })],
  }),
  fault("kubelet-only-times-out", "mount-pending", {
    events: [
      podEvent(
        "FailedMount",
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[]: timed out waiting for the condition",
      ),
    ],
  }),
  fault("static-volume-released-before", "claim-volume-unfit", {
    claims: [pendingClaim({ spec: { storageClassName: "" } })],
    volumes: [
      volume("pv-1", {
        spec: { claimRef: { namespace: "shop", name: "data", uid: "uid-before" } },
        status: { phase: "Released" },
      }),
    ],
    attachments: [],
  }),
  fault("host-path-of-wrong-type", "mount-failed", {
    pods: [pod("web", { spec: { volumes: [{ name: "lib", hostPath: { path: "/lib/modules" } }] } })],
    events: [
      podEvent(
        "FailedMount",
        'MountVolume.SetUp failed for volume "lib" : hostPath type check failed: /lib/modules is not a directory',
      ),
    ],
  }),
  fault("no-topology-for-provisioner", "provision-failed", {
    claims: [pendingClaim()],
    events: [
      claimEvent(
        "ProvisioningFailed",
        "error generating accessibility requirements: no available topology found",
      ),
    ],
    ...nothingBound,
  }),
];

export const UNREHEARSED_FAULTS: readonly Fault[] = [
  ...GOING_FAULTS,
  ...LISTED_FAULTS,
  ...PLACING_FAULTS,
  ...BINDING_FAULTS,
  ...MOUNTING_FAULTS,
  ...SECOND_LOOK,
];
