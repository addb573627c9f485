import type { Fault } from "./faults.testing.ts";
import {
  UNIQUE,
  ago,
  attachment,
  claim,
  cluster,
  node,
  pod,
  podEvent,
  runningPod,
  usingNode,
  volume,
  wait,
} from "./objects.testing.ts";
import type { ClusterObjects, MooringWait } from "./objects.ts";
import type { Reason } from "./reasons/reasons.ts";

/** Faults of which the objects say little, and a page of Mooring says what it is. */

function fault(
  name: string,
  reason: Reason,
  changes: Partial<ClusterObjects>,
  subject: Fault["subject"] = { kind: "pod", name: "web", namespace: "shop" },
): Fault {
  return { name, reason, subject, objects: cluster(changes) };
}

/** Of pod shop/web on node-a, unless told otherwise. */
const nodeSays = (reason: string, message: string, parts: Partial<MooringWait> = {}) => ({
  waits: [wait({ process: "node", pod: "shop/web", reason, message, ...parts })],
});
const nodeFails = (message: string, parts: Partial<MooringWait> = {}) =>
  nodeSays("backoff", message, { untilMs: Date.parse(ago(-14)), ...parts });

const STAGE_FAILS = "rpc error: code = Internal desc = injected fault";
const UNPUBLISH_FAILS = "rpc error: code = Internal desc = device is busy";
const leaving = { leaving: true, pod: "shop/old" };

const elsewhere = { attachments: [attachment("node-b")], nodes: [node(), usingNode("node-b")] };
const onB = { spec: { nodeName: "node-b" } };
const ending = { metadata: { deletionTimestamp: ago(30) } };

const NODE_PAGES: readonly Fault[] = [
  fault("node-page-fails", "mount-failed", nodeFails(STAGE_FAILS)),
  fault("node-page-stage-fails", "mount-failed", {
    ...nodeFails(STAGE_FAILS),
    events: [podEvent("FailedMount", `MountVolume.MountDevice failed for volume "pv-1" : ${STAGE_FAILS}`)],
  }),
  fault("node-page-before-older-event", "mount-failed", {
    ...nodeFails(STAGE_FAILS),
    events: [podEvent("FailedMount", 'MountVolume.SetUp failed for volume "pv-1" : secret "tls" not found')],
  }),
  fault("node-page-fsck", "fsck-failed", nodeFails("'fsck' found errors on device /dev/loop7")),
  fault("node-page-secret", "secret-missing", {
    pods: [pod("web", { spec: { volumes: [{ name: "keys", secret: { secretName: "tls" } }] } })],
    ...nodeFails('secret "tls" not found', { volume: "kubernetes.io/secret/uid-web-keys" }),
  }),
  fault(
    "node-page-step-running",
    "node-waits",
    nodeSays("step-running", `mount_device of ${UNIQUE} is under way`),
  ),
  fault("node-page-replaced", "volume-replaced", {
    pods: [runningPod("web")],
    nodes: [usingNode()],
    ...nodeSays(
      "volume-replaced",
      `volume "data" of the pod stays ${UNIQUE} until the pod ends, but its claim leads to kubernetes.io/csi/x^other (PersistentVolume pv-2) now`,
    ),
  }),
  fault("node-page-in-use-not-reported", "node-waits", {
    ...nodeSays("in-use-not-reported", "the API server has not confirmed volumesInUse of node-a"),
    nodes: [usingNode("node-a", { status: { volumesInUse: [] } })],
  }),
  fault("node-page-unheard-attach", "agent-behind", {
    ...nodeSays("not-attached", `node node-a does not list ${UNIQUE} as attached`),
    nodes: [usingNode()],
  }),
  fault("node-page-unheard-in-use", "agent-behind", {
    ...nodeSays("in-use-not-reported", "the API server has not confirmed volumesInUse of node-a"),
    nodes: [usingNode()],
  }),
  fault("node-page-replaced-on-silent-node", "node-not-ready", {
    pods: [runningPod("web")],
    nodes: [usingNode("node-a", { status: { conditions: [{ type: "Ready", status: "Unknown" }] } })],
    ...nodeSays(
      "volume-replaced",
      `volume "data" of the pod stays ${UNIQUE} until the pod ends, but its claim leads to kubernetes.io/csi/x^other (PersistentVolume pv-2) now`,
    ),
  }),
  fault("node-page-event-before-step", "mount-timeout", {
    ...nodeSays("step-running", `mount_device of ${UNIQUE} is under way`),
    events: [
      podEvent("FailedMount", 'MountVolume.MountDevice failed for volume "pv-1" : context deadline exceeded'),
    ],
  }),
  fault("node-page-unmount-before-mount", "unmount-failed", {
    waits: [
      wait({
        process: "node",
        pod: "shop/web",
        reason: "step-running",
        message: "another step is under way",
      }),
      ...nodeFails(UNPUBLISH_FAILS, leaving).waits,
    ],
  }),
  fault("node-page-ending-pod", "unmount-failed", {
    pods: [runningPod("web", ending)],
    ...nodeFails(UNPUBLISH_FAILS, { leaving: true }),
  }),
  fault("node-page-ending-pod-unnamed", "unmount-failed", {
    pods: [runningPod("web", ending)],
    ...nodeFails(UNPUBLISH_FAILS, { leaving: true, pod: "", podUid: "uid-web" }),
  }),
  fault("node-page-volume-gone", "volume-replaced", {
    pods: [runningPod()],
    claims: [claim("data", { status: { phase: "Lost" } })],
    volumes: [],
    ...nodeSays(
      "volume-replaced",
      `volume "data" of the pod stays ${UNIQUE} until the pod ends, but its objects no longer lead to it: error processing PVC shop/data: PVC is not bound`,
    ),
  }),
  fault("node-page-busy-names-process", "unmount-failed", {
    pods: [runningPod("web", ending)],
    ...nodeFails(
      `volume_unmount (NodeUnpublishVolume of driver ebs.csi.aws.com) failed: rpc error: code = Internal desc = unmount /var/lib/kubelet/pods/1011ea72-0b58-4aab-9c0e-66d42f4a6271/volumes/kubernetes.io~csi/pv-1/mount: target is busy; process 25918 (sleep) has its working directory at /var/lib/kubelet/pods/1011ea72-0b58-4aab-9c0e-66d42f4a6271/volumes/kubernetes.io~csi/pv-1/mount: it can be unmounted once that has ended`,
      { leaving: true },
    ),
  }),
  fault(
    "node-page-left-mounted",
    "unmount-failed",
    { pods: [], nodes: [usingNode()], ...nodeFails(UNPUBLISH_FAILS, { leaving: true, pod: "" }) },
    { kind: "node", name: "node-a", namespace: "" },
  ),
];

const startedPod = runningPod("web", { status: { startTime: ago(600) } });
const running = { pods: [startedPod], nodes: [usingNode()] };

/** A pod that runs, and objects that are no longer those it was started with. */
const REPLACED_FAULTS: readonly Fault[] = [
  fault("replaced-claim", "volume-replaced", {
    ...running,
    claims: [claim("data", { metadata: { creationTimestamp: ago(60) } })],
  }),
  fault("replaced-volume", "volume-replaced", {
    ...running,
    volumes: [volume("pv-1", { metadata: { creationTimestamp: ago(60) } })],
  }),
  fault("replaced-claim-gone", "volume-replaced", { ...running, claims: [] }),
  fault("replaced-volume-gone", "volume-replaced", { ...running, volumes: [] }),
  fault("replaced-volume-rebound", "volume-replaced", {
    ...running,
    volumes: [volume("pv-1", { spec: { claimRef: { namespace: "shop", name: "data", uid: "another" } } })],
  }),
  fault("replaced-told", "volume-replaced", {
    ...running,
    events: [
      podEvent(
        "VolumeReplaced",
        'volume "data" of the pod stays x until the pod ends, but its claim leads to y now',
      ),
    ],
  }),
];

const HOLDER_PAGES: readonly Fault[] = [
  fault("holder-page-unmount-fails", "holder-unmount-failed", {
    ...elsewhere,
    ...nodeFails(UNPUBLISH_FAILS, { ...leaving, node: "node-b", pod: "" }),
  }),
  fault("holder-page-ending-pod", "holder-unmount-failed", {
    ...elsewhere,
    pods: [pod(), runningPod("old", { ...onB, ...ending })],
    ...nodeFails(UNPUBLISH_FAILS, { ...leaving, node: "node-b" }),
  }),
  fault("held-by-two-pods-on-one-node", "held-by-running-pod", {
    ...elsewhere,
    pods: [pod(), runningPod("old", onB), runningPod("older", onB)],
  }),
  fault("held-by-several-nodes", "held-by-not-ready-node", {
    pods: [pod(), runningPod("old", onB)],
    attachments: [attachment("node-b"), attachment("node-c"), attachment("node-d")],
    nodes: [node(), usingNode("node-b"), usingNode("node-c", { ready: "Unknown" }), node("node-d")],
  }),
];

const controllerSays = (reason: string, message: string, parts: Partial<MooringWait> = {}) =>
  wait({ process: "controller", reason, message, ...parts });

const CONTROLLER_PAGES: readonly Fault[] = [
  fault("controller-page-policy-never", "held-by-not-ready-node", {
    attachments: [attachment("node-b")],
    nodes: [node(), usingNode("node-b", { ready: "Unknown" })],
    waits: [
      wait({
        process: "controller",
        node: "node-b",
        reason: "policy-never",
        message: "the detach policy of node-b forbids to force it",
      }),
    ],
  }),
  fault("attacher-page-backoff", "controller-waits", {
    attachments: [attachment("node-a", { status: { attached: false } })],
    nodes: [node()],
    waits: [
      wait({
        process: "attacher",
        volume: "",
        reason: "backoff",
        message: "ControllerPublishVolume of vol-1 failed: Unavailable: connection refused",
        untilMs: Date.parse(ago(-8)),
      }),
    ],
  }),
  fault("holder-not-released-known-why", "controller-waits", {
    attachments: [attachment("node-b")],
    nodes: [node(), node("node-b")],
    waits: [
      wait({
        process: "controller",
        node: "node-b",
        reason: "still-mounted",
        message:
          "node node-b was created anew and has not said what it uses; it is detached once the node lists volumes in use without it",
        untilMs: Date.parse(ago(-80)),
      }),
    ],
  }),
  fault("attacher-page-detach-backoff", "holder-detach-failed", {
    attachments: [
      attachment("node-b", {
        metadata: { deletionTimestamp: ago(100) },
        status: { detachError: { message: "rpc error: still staged on node-b", time: ago(90) } },
      }),
    ],
    nodes: [node(), node("node-b")],
    waits: [
      wait({
        ...{ process: "attacher", volume: "", node: "node-b", reason: "backoff" },
        message: "rpc error: still staged on node-b",
        untilMs: Date.parse(ago(-150)),
      }),
    ],
  }),
  fault("controller-page-unheard-attach", "controller-behind", {
    nodes: [node()],
    waits: [controllerSays("driver-attaching", `the driver was asked to attach ${UNIQUE}`)],
  }),
  fault("controller-page-unheard-detach", "controller-behind", {
    attachments: [],
    nodes: [node()],
    waits: [controllerSays("driver-detaching", `the driver was asked to detach ${UNIQUE}`)],
  }),
  fault("controller-page-attached-just-now", "controller-waits", {
    nodes: [node()],
    waits: [
      controllerSays("driver-attaching", `the driver was asked to attach ${UNIQUE}`, {
        sinceMs: Date.parse(ago(2)),
      }),
    ],
  }),
  fault("controller-page-overtaken", "mount-failed", {
    waits: [
      controllerSays("driver-attaching", `the driver was asked to attach ${UNIQUE}`),
      controllerSays(
        "node-status",
        "waiting for node node-a's status.volumesAttached to list it as attached",
      ),
      ...nodeFails(STAGE_FAILS).waits,
    ],
  }),
  fault("silent-page-noted", "mount-pending", {
    notes: ["nobody answers at http://127.0.0.1:40001, where `mooring up` said its controller is"],
  }),
];

export const PAGE_FAULTS: readonly Fault[] = [
  ...REPLACED_FAULTS,
  ...NODE_PAGES,
  ...HOLDER_PAGES,
  ...CONTROLLER_PAGES,
];
