import { expect, test } from "vitest";
import { trimNode, type Node } from "./node.ts";

const MANAGED = "volumes.kubernetes.io/controller-managed-attach-detach";

const ready = (status: string) => ({
  type: "Ready",
  status,
  reason: "KubeletReady",
  message: "kubelet is posting ready status",
  lastHeartbeatTime: "2025-01-02T00:00:00Z",
  lastTransitionTime: "2025-01-01T00:00:00Z",
});

function node(overrides: { spec?: object; status?: object; metadata?: object } = {}): Node {
  return {
    metadata: {
      name: "node-a",
      uid: "u-1",
      resourceVersion: "7",
      creationTimestamp: "2025-01-01T00:00:00Z",
      labels: { "kubernetes.io/hostname": "node-a" },
      annotations: { [MANAGED]: "true", "node.alpha.kubernetes.io/ttl": "0" },
      managedFields: [{ manager: "kubelet" }],
      ...overrides.metadata,
    },
    spec: { podCIDR: "10.0.0.0/24", ...overrides.spec },
    status: {
      capacity: { cpu: "8" },
      conditions: [{ type: "MemoryPressure", status: "False" }, ready("True")],
      images: [{ names: ["registry.example/app:1"], sizeBytes: 1 }],
      ...overrides.status,
    },
  };
}

test("a node keeps who it is, that it is managed, and since when it is ready", () => {
  expect(trimNode(node())).toStrictEqual({
    metadata: {
      name: "node-a",
      uid: "u-1",
      resourceVersion: "7",
      creationTimestamp: "2025-01-01T00:00:00Z",
      annotations: { [MANAGED]: "true" },
    },
    spec: {},
    status: {
      conditions: [
        {
          type: "Ready",
          status: "True",
          reason: "KubeletReady",
          lastTransitionTime: "2025-01-01T00:00:00Z",
        },
      ],
    },
  });
});

for (const [annotations, kept] of [
  [{ [MANAGED]: "true", other: "x" }, { [MANAGED]: "true" }],
  [{ [MANAGED]: "false" }, { [MANAGED]: "false" }],
  [{ [MANAGED]: "" }, { [MANAGED]: "" }], // the key alone decides
  [{ other: "x" }, undefined],
  [undefined, undefined],
] as const) {
  test(`of the annotations ${JSON.stringify(annotations)} stays ${JSON.stringify(kept)}`, () => {
    expect(trimNode(node({ metadata: { annotations } })).metadata.annotations).toEqual(kept);
  });
}

test("taints and volumes are kept whole, in order", () => {
  const taints = [
    { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" },
    { key: "dedicated", effect: "NoSchedule" },
  ];
  const volumesInUse = ["kubernetes.io/csi/csi.example.com^v1", "kubernetes.io/csi/csi.example.com^v2"];
  const volumesAttached = [
    { name: "kubernetes.io/csi/csi.example.com^v2", devicePath: "" },
    { name: "kubernetes.io/csi/csi.example.com^v3", devicePath: "/dev/xvdf" },
  ];

  const trimmed = trimNode(node({ spec: { taints }, status: { volumesInUse, volumesAttached } }));

  expect(trimmed.spec).toEqual({ taints });
  expect(trimmed.status).toMatchObject({ volumesInUse, volumesAttached });
});

test("of the machine stays which boot it is, where it is said", () => {
  const info = { bootID: "b-1", kernelVersion: "6.1" } as NonNullable<Node["status"]>["nodeInfo"];
  const silent = { ...info, bootID: "" } as typeof info;

  expect(trimNode(node({ status: { nodeInfo: info } })).status?.nodeInfo).toEqual({ bootID: "b-1" });
  expect(trimNode(node({ status: { nodeInfo: silent } })).status?.nodeInfo).toBeUndefined();
});

test("of several Ready conditions the first counts, and none is made up", () => {
  const two = trimNode(node({ status: { conditions: [ready("False"), ready("True")] } }));
  const none = trimNode(node({ status: { conditions: [] } }));

  expect(two.status?.conditions).toMatchObject([{ status: "False" }]);
  expect(none.status?.conditions).toBeUndefined();
});

test("a node that just registered and one that is going are no obstacle", () => {
  const going = trimNode(node({ metadata: { deletionTimestamp: "2025-01-02T00:00:00Z" } }));

  expect(trimNode({ metadata: { name: "new" } })).toMatchObject({ metadata: { name: "new" }, status: {} });
  expect(going.metadata.deletionTimestamp).toBe("2025-01-02T00:00:00Z");
});
