import type { Fault } from "./faults.testing.ts";
import {
  ago,
  attachment,
  claim,
  cluster,
  DRIVER,
  node,
  pod,
  runningPod,
  usingNode,
  volume,
} from "./objects.testing.ts";
import type { ClusterObjects } from "./objects.ts";
import type { Reason } from "./reasons/reasons.ts";

/** VolumeAttachments that no controller made, and disks that two PersistentVolumes name. */

const CLAIM = { kind: "pvc", name: "data", namespace: "shop" } as const;
const PV = { kind: "pv", name: "pv-1", namespace: "" } as const;

function fault(
  name: string,
  reason: Reason,
  changes: Partial<ClusterObjects>,
  subject: Fault["subject"] = { kind: "pod", name: "web", namespace: "shop" },
): Fault {
  return { name, reason, subject, objects: cluster(changes) };
}

const onB = { spec: { nodeName: "node-b" } };

const foreign = (node: string, parts: Parameters<typeof attachment>[1] = {}) =>
  attachment(node, { ...parts, metadata: { name: "made-by-hand", ...parts.metadata } });
/** Another PersistentVolume of the same disk, for pods of another claim. */
const renamed = {
  claims: [claim(), claim("copy", { spec: { volumeName: "pv-2" } })],
  volumes: [
    volume(),
    volume("pv-2", { spec: { claimRef: { namespace: "shop", name: "copy", uid: "uid-copy" } } }),
  ],
};

export const FOREIGN_FAULTS: readonly Fault[] = [
  fault("held-by-foreign-attachment", "held-by-foreign-attachment", {
    attachments: [foreign("node-b")],
    nodes: [node(), usingNode("node-b")],
  }),
  fault("held-by-foreign-attachment-inline", "held-by-foreign-attachment", {
    attachments: [
      foreign("node-b", {
        spec: { source: { inlineVolumeSpec: { csi: { driver: DRIVER, volumeHandle: "vol-1" } } } },
      }),
    ],
    nodes: [node(), node("node-b")],
  }),
  fault("held-by-renamed-volume", "volume-handle-shared", {
    ...renamed,
    pods: [pod(), runningPod("old", { ...onB, claim: "copy" })],
    attachments: [attachment("node-b", { spec: { source: { persistentVolumeName: "pv-2" } } })],
    nodes: [node(), usingNode("node-b")],
  }),
  fault("held-by-renamed-volume-gone", "holder-still-mounted", {
    attachments: [attachment("node-b", { spec: { source: { persistentVolumeName: "pv-before" } } })],
    nodes: [node(), usingNode("node-b")],
  }),
  fault("running-beside-foreign-attachment", "foreign-attachment", {
    pods: [runningPod()],
    attachments: [attachment(), foreign("node-a")],
  }),
  fault(
    "volume-beside-foreign-attachment",
    "foreign-attachment",
    { pods: [runningPod()], attachments: [attachment(), foreign("node-a")] },
    PV,
  ),
  fault(
    "claim-beside-foreign-attachment",
    "foreign-attachment",
    { pods: [runningPod()], attachments: [attachment(), foreign("node-a")] },
    CLAIM,
  ),
  fault("running-on-foreign-attachment-alone", "foreign-attachment", {
    pods: [runningPod()],
    attachments: [foreign("node-a")],
  }),
  fault("waiting-for-foreign-attachment-to-go", "foreign-attachment", {
    attachments: [foreign("node-a", { metadata: { deletionTimestamp: ago(10) } })],
    nodes: [node()],
  }),
  fault(
    "foreign-attachment-unused",
    "foreign-attachment",
    { pods: [], attachments: [foreign("node-a")], nodes: [node()] },
    PV,
  ),
  fault("foreign-attachment-on-second-node", "attached-twice", {
    pods: [runningPod()],
    attachments: [attachment(), foreign("node-b")],
  }),
  fault("renamed-volume-on-second-node", "attached-twice", {
    ...renamed,
    pods: [runningPod()],
    attachments: [attachment(), attachment("node-b", { spec: { source: { persistentVolumeName: "pv-2" } } })],
  }),
  fault("attachment-mismatch", "attachment-mismatch", {
    volumes: [volume(), volume("pv-2", { spec: { csi: { driver: DRIVER, volumeHandle: "vol-2" } } })],
    attachments: [attachment("node-a", { spec: { source: { persistentVolumeName: "pv-2" } } })],
    nodes: [node()],
  }),
];
