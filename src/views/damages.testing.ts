import { DRIVER, OWN, type Base, type FaultWorld, type Kind } from "./fault-world.testing.ts";
import type { Reason } from "./reasons/reasons.ts";

/** One thing that somebody does to a cluster, and what may then be named as the cause. */
export interface Damage {
  readonly kind: Kind;
  readonly name: string;
  /** By the state in which the pod was: the causes that are right. Not named here, it is not tried there. */
  readonly causes: Readonly<Partial<Record<Base, readonly Reason[]>>>;
  /** Whether the pod is cut off from its data, or can never get it, so that nothing may be called healthy. */
  readonly breaks: boolean;
  /** What else may be said of it beside another damage, which changes what it does. */
  readonly beside?: readonly Reason[];
  /** A process says it itself: then it is known also of a pod that ends. */
  readonly isSaid?: boolean;
  readonly apply: (world: FaultWorld) => Promise<unknown>;
}

type Causes = Damage["causes"];

function damages(
  kind: Kind,
  rows: Readonly<Record<string, readonly [Causes, Damage["apply"]]>>,
  { breaks }: { readonly breaks: boolean },
): readonly Damage[] {
  return Object.entries(rows).map(([name, [causes, apply]]) => ({ kind, name, causes, breaks, apply }));
}

const broken = { breaks: true };
const harmless = { breaks: false };
const bothBound = (...causes: readonly Reason[]): Causes => ({ running: causes, waiting: causes });

const CLAIM_DAMAGES = damages(
  "claim",
  {
    deleted: [
      { running: ["volume-replaced"], waiting: ["claim-missing"], unbound: ["claim-missing"] },
      (world) => world.destroy("claim", "data"),
    ],
    deleting: [
      { running: ["claim-deleted-in-use"], waiting: ["claim-deleting"], unbound: ["claim-deleting"] },
      (world) => world.delete("claim", "data", "kubernetes.io/pvc-protection"),
    ],
    "kept by a stranger": [
      // The pod that waits counts as its user: it has a node.
      { running: ["claim-deleted-in-use"], waiting: ["claim-deleting"], unbound: ["claim-finalizers"] },
      (world) => world.delete("claim", "data", "backup.example.com/hold"),
    ],
    lost: [
      { running: ["contradiction"], waiting: ["claim-lost"] },
      (world) => world.status("claim", "data", { phase: "Lost" }),
    ],
    "made again": [
      {
        running: ["volume-replaced"],
        waiting: ["claim-volume-unfit", "volume-released", "provisioner-silent"],
      },
      async (world) => {
        await world.destroy("claim", "data");
        await world.later(5);
        const spec = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
        await world.add("claim", "data", { spec: { ...spec, storageClassName: "fast" } });
        await world.status("claim", "data", { phase: "Pending" });
      },
    ],
    "pending again": [
      { running: ["contradiction"], waiting: ["binder-silent"] },
      (world) => world.status("claim", "data", { phase: "Pending" }),
    ],
    "for a node that is gone": [
      { unbound: ["selected-node-missing"] },
      (world) => world.change("claim", "data", annotated("volume.kubernetes.io/selected-node", "node-z")),
    ],
    "refused by its provisioner": [
      { unbound: ["provision-failed"] },
      (world) => world.event("PersistentVolumeClaim", "data", "ProvisioningFailed", "pool is full"),
    ],
  },
  broken,
);

function annotated(key: string, value: string) {
  return { metadata: { annotations: { [key]: value } } };
}

const GROWING = damages(
  "claim",
  {
    growing: [
      { running: ["expand-pending"] },
      async (world) => {
        await world.change("class", "fast", { allowVolumeExpansion: true });
        await world.change("claim", "data", { spec: { resources: { requests: { storage: "2Gi" } } } });
      },
    ],
  },
  harmless,
);

const other = { kind: "PersistentVolumeClaim", namespace: "shop", name: "other", uid: "uid-other" };

const VOLUME_DAMAGES = damages(
  "volume",
  {
    deleted: [
      { running: ["volume-replaced"], waiting: ["volume-missing"] },
      (world) => world.destroy("volume", "pv-1"),
    ],
    deleting: [
      { running: ["volume-deleted-in-use"], waiting: ["volume-deleting"] },
      (world) => world.delete("volume", "pv-1", "kubernetes.io/pv-protection"),
    ],
    "bound to another claim": [
      { running: ["volume-replaced"], waiting: ["volume-not-bound-back"] },
      (world) => world.change("volume", "pv-1", { spec: { claimRef: other } }),
    ],
    released: [
      { running: ["contradiction"], waiting: ["contradiction"] },
      (world) => world.status("volume", "pv-1", { phase: "Released" }),
    ],
    failed: [
      { running: ["contradiction"], waiting: ["contradiction"] },
      (world) => world.status("volume", "pv-1", { phase: "Failed", message: "no" }),
    ],
    "made twice for one disk": [
      { running: ["volume-handle-shared"], waiting: ["volume-handle-shared"] },
      (world) => world.addVolume("pv-2", {}),
    ],
    "for another node": [
      { running: ["contradiction"], waiting: ["volume-node-conflict"] },
      (world) => world.change("volume", "pv-1", { spec: { nodeAffinity: onlyOn("node-b") } }),
    ],
    "too small for the claim": [
      { unbound: ["claim-volume-unfit"] },
      (world) =>
        world.addVolume("pv-1", {
          capacity: { storage: "1Mi" },
          claimRef: { kind: "PersistentVolumeClaim", namespace: "shop", name: "data" },
        }),
    ],
    "of another class": [
      { unbound: ["claim-volume-unfit"] },
      (world) =>
        world.addVolume("pv-1", {
          storageClassName: "",
          claimRef: { kind: "PersistentVolumeClaim", namespace: "shop", name: "data" },
        }),
    ],
  },
  broken,
);

function onlyOn(name: string) {
  const rule = { key: "kubernetes.io/hostname", operator: "In", values: [name] };
  return { required: { nodeSelectorTerms: [{ matchExpressions: [rule] }] } };
}

const error = (message: string) => ({ attachError: { message, time: "2026-01-01T00:10:00Z" } });

const ATTACHMENT_DAMAGES = damages(
  "attachment",
  {
    deleted: [
      { running: ["attachment-gone"], waiting: ["attachment-not-created"] },
      (world) => world.destroy("attachment", OWN("node-a")),
    ],
    deleting: [
      { running: ["detaching-in-use"], waiting: ["attachment-deleting"] },
      (world) => world.delete("attachment", OWN("node-a")),
    ],
    detached: [
      { running: ["detached-in-use"], waiting: ["driver-attaching"] },
      (world) => world.status("attachment", OWN("node-a"), { attached: false }),
    ],
    "refused by its driver": [
      { running: ["detached-in-use"], waiting: ["attach-failed"] },
      (world) => world.status("attachment", OWN("node-a"), { attached: false, ...error("no such disk") }),
    ],
    "seen by no attacher": [
      { running: ["detached-in-use"], waiting: ["attacher-missing"] },
      async (world) => {
        await world.change("attachment", OWN("node-a"), { metadata: { finalizers: null } });
        await world.status("attachment", OWN("node-a"), { attached: false });
      },
    ],
    "somebody else's on the same node": [
      bothBound("foreign-attachment"),
      (world) => world.attach("node-a", { name: "by-hand" }),
    ],
    "somebody else's on another node": [
      bothBound("attached-twice"),
      (world) => world.attach("node-b", { name: "by-hand" }),
    ],
    "a second one on another node": [bothBound("attached-twice"), (world) => world.attach("node-b")],
    "of another volume under the same name": [
      bothBound("attachment-mismatch"),
      async (world) => {
        await world.destroy("attachment", OWN("node-a"));
        await world.addVolume("pv-9", { csi: { driver: DRIVER, volumeHandle: "vol-9" } });
        await world.attach("node-a", { pv: "pv-9" });
      },
    ],
    "on another node only": [
      { running: ["attachment-gone"], waiting: ["holder-not-released"] },
      async (world) => {
        await world.destroy("attachment", OWN("node-a"));
        await world.attach("node-b");
      },
    ],
  },
  broken,
);

const ready = (status: string) => [{ type: "Ready", status, reason: "Told" }];

const NODE_DAMAGES = damages(
  "node",
  {
    deleted: [bothBound("node-missing"), (world) => world.destroy("node", "node-a")],
    "not ready": [
      bothBound("node-not-ready"),
      (world) => world.status("node", "node-a", { conditions: ready("Unknown") }),
    ],
    "not listing the volume": [
      { running: ["contradiction"], waiting: ["node-status"] },
      (world) => world.status("node", "node-a", { volumesAttached: null }),
    ],
    "not using the volume": [
      { running: ["contradiction"], waiting: ["agent-silent"] },
      (world) => world.status("node", "node-a", { volumesInUse: null }),
    ],
    "all cordoned": [
      { unbound: ["unschedulable-cordoned"] },
      async (world) => {
        await world.destroy("pod", "web");
        await world.change("class", "fast", {});
        await world.destroy("class", "fast");
        await world.add("class", "fast", { provisioner: DRIVER, volumeBindingMode: "WaitForFirstConsumer" });
        for (const name of ["node-a", "node-b"])
          await world.change("node", name, { spec: { unschedulable: true } });
        await world.addPod(undefined);
        await world.event(
          "Pod",
          "web",
          "FailedScheduling",
          "0/2 nodes are available: 2 node(s) were unschedulable.",
        );
      },
    ],
  },
  broken,
);

const MISC_BROKEN = [
  ...damages(
    "csiNode",
    {
      deleted: [bothBound("csinode-missing"), (world) => world.destroy("csiNode", "node-a")],
      "without the driver": [
        bothBound("driver-not-registered"),
        (world) => world.change("csiNode", "node-a", { spec: { drivers: [] } }),
      ],
    },
    broken,
  ),
  ...damages(
    "class",
    {
      deleted: [{ unbound: ["class-missing"] }, (world) => world.destroy("class", "fast")],
      "without a provisioner": [
        { unbound: ["claim-static-unmatched"] },
        async (world) => {
          await world.destroy("class", "fast");
          await world.add("class", "fast", { provisioner: "kubernetes.io/no-provisioner" });
        },
      ],
    },
    broken,
  ),
  ...damages(
    "pod",
    {
      gated: [
        { unbound: ["scheduling-gated", "provisioner-silent"] },
        async (world) => {
          await world.destroy("pod", "web");
          await world.addPod(undefined, { schedulingGates: [{ name: "example.com/gate" }] });
        },
      ],
      crashing: [
        { running: ["container-waiting"] },
        (world) => world.podRuns({ waiting: { reason: "CrashLoopBackOff", message: "back-off" } }),
      ],
    },
    harmless,
  ),
];

const mountFails = (message: string) => (world: FaultWorld) =>
  world.event("Pod", "web", "FailedMount", `MountVolume.SetUp failed for volume "pv-1" : ${message}`);

const EVENT_DAMAGES = damages(
  "event",
  {
    "mount refused": [{ waiting: ["mount-failed"] }, mountFails("rpc error: code = Internal desc = odd")],
    "file system unknown": [
      { waiting: ["fs-unsupported"] },
      mountFails("mount: /x: unknown filesystem type 'zfs'."),
    ],
    "Secret missing": [{ waiting: ["secret-missing"] }, mountFails('secrets "user" not found')],
    "file system damaged": [
      { waiting: ["fsck-failed"] },
      mountFails("'fsck' found errors on device /dev/sdb"),
    ],
    "driver hangs": [{ waiting: ["mount-timeout"] }, mountFails("context deadline exceeded")],
    "no plugin": [
      { waiting: ["mount-plugin-missing"] },
      (world) =>
        world.event(
          "Pod",
          "web",
          "FailedMount",
          "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: no volume plugin matched",
        ),
    ],
  },
  broken,
);

/** What looks odd and is not: none of it may be blamed. */
const HARMLESS = [
  ...damages(
    "event",
    {
      "of a mount that failed before": [{ running: [] }, mountFails("it was odd")],
      "about a volume of another name": [
        bothBound(),
        (world) =>
          world.event("Pod", "web", "FailedMount", 'MountVolume.SetUp failed for volume "other" : odd'),
      ],
    },
    harmless,
  ),
  ...damages(
    "csiDriver",
    { deleted: [bothBound(), (world) => world.destroy("csiDriver", DRIVER)] },
    harmless,
  ),
  ...damages(
    "node",
    {
      cordoned: [bothBound(), (world) => world.change("node", "node-a", { spec: { unschedulable: true } })],
      "another deleted": [bothBound(), (world) => world.destroy("node", "node-b")],
      "another not ready": [
        bothBound(),
        (world) => world.status("node", "node-b", { conditions: ready("False") }),
      ],
      "another using a volume of no driver": [
        bothBound(),
        (world) => world.status("node", "node-b", { volumesInUse: ["kubernetes.io/iscsi/x"] }),
      ],
    },
    harmless,
  ),
  ...damages(
    "class",
    { "deleted after use": [bothBound(), (world) => world.destroy("class", "fast")] },
    harmless,
  ),
  ...damages(
    "pod",
    { ending: [{ running: ["pod-not-ended"] }, (world) => world.delete("pod", "web")] },
    harmless,
  ),
];

const failsWith = (message: string) => ({ waitingFor: { reason: "backoff", message } });
const BUSY =
  "rpc error: code = Internal desc = target is busy; process 7 (sleep) has its working directory at /mnt: it can be unmounted once that has ended";

/** What only the node knows. */
const PAGE_DAMAGES = [
  ...damages(
    "node",
    {
      "says that nothing is mounted": [{ running: ["contradiction"] }, (world) => world.nodeSays(undefined)],
      "says that its mount fails": [
        { waiting: ["mount-failed"] },
        (world) =>
          world.nodeSays({ pod: "shop/web", wanted: true, state: "not-mounted", ...failsWith("it is odd") }),
      ],
      "says that the unmount is busy": [
        { running: ["unmount-failed"] },
        async (world) => {
          await world.nodeSays({ wanted: false, state: "uncertain", ...failsWith(BUSY) });
          await world.delete("pod", "web");
        },
      ],
    },
    broken,
  ),
  ...damages(
    "node",
    {
      "says that it is mounted": [
        { running: [] },
        (world) => world.nodeSays({ pod: "shop/web", wanted: true, state: "mounted" }),
      ],
    },
    harmless,
  ),
].map((damage) => ({ ...damage, isSaid: true }));

/** An attachment elsewhere holds the volume as soon as it is not attached here; a claim that waits is told by its volume. */
const BESIDE: Readonly<Record<string, readonly Reason[]>> = {
  "attachment somebody else's on another node": ["held-by-foreign-attachment"],
  "attachment somebody else's on the same node": ["attached-twice"],
  "attachment a second one on another node": ["holder-not-released"],
  "attachment seen by no attacher": ["attachment-gone", "attachment-not-created"],
  "node another deleted": ["held-by-missing-node"],
  "node another not ready": ["held-by-not-ready-node"],
  "claim pending again": ["volume-bound-elsewhere", "volume-failed", "claim-volume-unfit"],
};

const ALL: readonly Damage[] = [
  ...CLAIM_DAMAGES,
  ...GROWING,
  ...VOLUME_DAMAGES,
  ...ATTACHMENT_DAMAGES,
  ...NODE_DAMAGES,
  ...MISC_BROKEN,
  ...EVENT_DAMAGES,
  ...HARMLESS,
  ...PAGE_DAMAGES,
];

export const DAMAGES = ALL.map((damage) => ({
  ...damage,
  beside: BESIDE[`${damage.kind} ${damage.name}`] ?? [],
}));
