import type { Fault } from "./faults.testing.ts";
import { memberPod, setEvent, snapshot, snapshotClass, statefulSet } from "./kind-objects.testing.ts";
import {
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
  usingNode,
  volume,
} from "./objects.testing.ts";
import type { VolumeAttachment } from "../kube/api/volume-attachment.ts";
import { volumeAttachmentName } from "../volumes/names.ts";

/** Claim, volume and attachment `number`, each its own disk. */
function disk(number: number, on: string) {
  const [name, pv, handle] = [`data-${number}`, `pvc-${uuid(number)}`, `vol-${number}`];
  const claimRef = { namespace: "shop", name, uid: `uid-${name}` };
  return {
    claim: claim(name, { spec: { volumeName: pv } }),
    volume: volume(pv, { spec: { claimRef, csi: { driver: DRIVER, volumeHandle: handle } } }),
    attachment: attachment(on, {
      metadata: { name: volumeAttachmentName({ driver: DRIVER, volumeHandle: handle }, on) },
      spec: { source: { persistentVolumeName: pv } },
    }),
  };
}

const uuid = (number: number) => `${String(number).repeat(8)}-4e5f-4a6b-8c7d-9e0f1a2b${number}f3e`;

const disks = [disk(2, "node-a"), disk(3, "node-b"), disk(4, "node-c")];
const inUse = (number: number) => `kubernetes.io/csi/${DRIVER}^vol-${number}`;
const lists = (...numbers: readonly number[]) => ({
  status: {
    volumesAttached: numbers.map((number) => ({ name: inUse(number), devicePath: "" })),
    volumesInUse: numbers.map(inUse),
  },
});
const missingClass = (number: number) =>
  pendingClaim({
    metadata: { name: `logs-${number}`, uid: `uid-logs-${number}` },
    spec: { storageClassName: "archive" },
  });

/** A cluster in which much is well and five things are wrong, with everything that lists and `why -A` show. */
export const CROWD: Fault = {
  name: "crowd",
  reason: undefined,
  subject: { kind: "node", name: "node-a", namespace: "" },
  objects: cluster({
    pods: [
      runningPod("api-0", { claim: "data-2" }),
      runningPod("api-1", { claim: "data-3", spec: { nodeName: "node-b" } }),
      runningPod("api-2", { claim: "data-4", spec: { nodeName: "node-c" } }),
      pod("api-3", { claim: "data-4" }),
      ...[1, 2, 3].map((number) =>
        pod(`log-${number}`, { claim: `logs-${number}`, spec: { nodeName: undefined } }),
      ),
      pod("import", { claim: "bulk" }),
      memberPod(["StatefulSet", "db"], "db-0", { claim: "data-2" }),
    ],
    claims: [
      ...disks.map((item) => item.claim),
      ...[1, 2, 3].map(missingClass),
      pendingClaim({
        metadata: { name: "bulk", annotations: { "volume.kubernetes.io/storage-provisioner": DRIVER } },
      }),
      claim("idle"),
    ],
    volumes: [
      ...disks.map((item) => item.volume),
      volume("pv-1", { spec: { claimRef: { namespace: "shop", name: "idle", uid: "uid-idle" } } }),
    ],
    attachments: [...disks.map((item): VolumeAttachment => item.attachment), attachment("node-b")],
    nodes: [
      usingNode("node-a", lists(2)),
      node("node-b", lists(3)),
      node("node-c", { ready: "Unknown", ...lists(4) }),
    ],
    csiNodes: [
      csiNode(),
      csiNode("node-b", [{ name: DRIVER, allocatable: { count: 25 } }]),
      csiNode("node-c"),
    ],
    statefulSets: [statefulSet(2, { status: { readyReplicas: 1 } })],
    snapshots: [snapshot()],
    snapshotClasses: [snapshotClass()],
    events: [
      {
        ...claimEvent("ProvisioningFailed", "rpc error: code = ResourceExhausted desc = pool is full"),
        involvedObject: { kind: "PersistentVolumeClaim", name: "bulk", namespace: "shop" },
      },
      setEvent(
        'create Pod db-1 in StatefulSet db failed error: pods "db-1" is forbidden: exceeded quota: team-quota, requested: pods=1, used: pods=9, limited: pods=9',
      ),
    ],
  }),
};
