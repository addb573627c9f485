import { expect, test } from "vitest";
import { volumeAttachmentName } from "../volumes/names.ts";
import { attachmentRows } from "./attachments.ts";
import { createCluster } from "./cluster.ts";
import { driverRows } from "./drivers.ts";
import { nodeRows } from "./nodes.ts";
import {
  ago,
  attachment,
  claim,
  cluster,
  csiNode,
  DRIVER,
  node,
  NOW_MS,
  pendingClaim,
  pod,
  runningPod,
  usingNode,
  volume,
} from "./objects.testing.ts";
import type { ClusterObjects } from "./objects.ts";
import { operationRows } from "./operations.ts";
import { volumeRows } from "./volumes.ts";

const given = (changes: Partial<ClusterObjects> = {}) => createCluster(cluster(changes), NOW_MS);

test("a volume is where its pod is, and one that nobody uses is where it is attached", () => {
  const disk = (volumeHandle: string) => ({ csi: { driver: DRIVER, volumeHandle } });
  const free = volume("pv-free", {
    spec: { claimRef: undefined, ...disk("vol-3") },
    status: { phase: "Available" },
  });

  const rows = volumeRows(
    given({
      pods: [runningPod()],
      claims: [claim(), claim("idle", { spec: { volumeName: "pv-2" } })],
      volumes: [
        volume(),
        volume("pv-2", {
          spec: { claimRef: { uid: "uid-idle", namespace: "shop", name: "idle" }, ...disk("vol-2") },
        }),
        free,
      ],
    }),
  );

  expect(
    rows.map(({ pod: name, claim: of, volume: pv, node: on, state }) => [name, of, pv, on, state]),
  ).toEqual([
    ["web", "data", "pv-1", "node-a", "mounted"],
    ["", "idle", "pv-2", "", "bound"],
    ["", "", "pv-free", "", "available"],
  ]);
  expect(rows.every(({ why }) => why === undefined)).toBe(true);
});

test("a volume that waits says why in the same words as `why`", () => {
  const [row] = volumeRows(
    given({ claims: [pendingClaim()], volumes: [], attachments: [], storageClasses: [] }),
  );

  expect(row).toMatchObject({
    state: "unbound",
    reason: "class-missing",
    why: "StorageClass fast, which claim shop/data asks for, does not exist; there is none at all",
    sinceMs: NOW_MS - 600_000,
  });
});

test("an attachment shows who uses it, and one that nobody wants says so", () => {
  const unwanted = attachment("node-b", { spec: { source: { persistentVolumeName: "pv-2" } } });
  const rows = attachmentRows(given({ pods: [runningPod()], attachments: [attachment(), unwanted] }));

  expect(rows).toMatchObject([
    { volume: "pv-1", state: "attached", pods: ["shop/web"] },
    { volume: "pv-2", state: "attached", pods: [], reason: "attachment-orphaned-unsure" },
  ]);
  expect(rows[0]?.why).toBeUndefined();
});

test("a node shows what it has and may have, also one that is gone", () => {
  const rows = nodeRows(
    given({
      pods: [runningPod()],
      nodes: [usingNode()],
      csiNodes: [csiNode("node-a", [{ name: DRIVER, allocatable: { count: 16 } }])],
      attachments: [attachment(), attachment("node-z")],
    }),
  );

  expect(rows).toMatchObject([
    {
      name: "node-a",
      state: "ready",
      attached: 1,
      inUse: 1,
      drivers: [{ name: DRIVER, attached: 1, limit: 16 }],
    },
    { name: "node-z", state: "gone", attached: 1, reason: "held-by-missing-node" },
  ]);
});

test("a driver that only volumes name is listed, and said to be registered nowhere", () => {
  const rows = driverRows(
    given({ csiNodes: [csiNode("node-a", []), csiNode("node-b", [])], csiDrivers: [] }),
  );

  expect(rows).toMatchObject([
    { name: DRIVER, nodes: 0, nodesInAll: 2, attachments: 1, state: "not registered" },
  ]);
});

test("operations are what is not finished, forward and backward", () => {
  const leaving = attachment("node-b", {
    metadata: {
      name: volumeAttachmentName({ driver: DRIVER, volumeHandle: "vol-2" }, "node-b"),
      deletionTimestamp: ago(9),
    },
    spec: { source: { persistentVolumeName: "pv-2" } },
  });

  const rows = operationRows(
    given({ pods: [pod()], attachments: [leaving], nodes: [node(), node("node-b")] }),
  );

  expect(rows.map(({ operation, volume: pv, node: on, reason }) => [operation, pv, on, reason])).toEqual([
    ["attach", "pv-1", "node-a", "attachment-not-created"],
    ["detach", "pv-2", "node-b", "driver-detaching"],
  ]);
  expect(operationRows(given({ pods: [runningPod()] }))).toEqual([]);
});
