import { describe, expect, test } from "vitest";
import type { CSIDriver } from "../../kube/api/csi-driver.ts";
import type { Explanation } from "../explanation.ts";
import { createCluster } from "../cluster.ts";
import { explain } from "../explain.ts";
import {
  ago,
  attachment,
  claim,
  cluster,
  csiNode,
  DRIVER,
  node,
  NOW_MS,
  runningPod,
  UNIQUE,
  usingNode,
  volume,
} from "../objects.testing.ts";
import type { ClusterObjects, ObjectKind } from "../objects.ts";
import { AGREEMENTS } from "./agreements.ts";
import { contradictionsOf } from "./contradictions.ts";
import { volumeViewsOf } from "../volume-view.ts";

type Changes = Partial<ClusterObjects>;

function given(changes: Changes): ClusterObjects {
  return cluster({ pods: [runningPod()], ...changes });
}

function whyPod(changes: Changes): Explanation {
  const answer = explain(createCluster(given(changes), NOW_MS), {
    kind: "pod",
    name: "web",
    namespace: "shop",
  });
  if (answer === undefined) throw new Error("the pod is not there");
  return answer;
}

const unread = (kind: ObjectKind): Changes => ({
  [kind]: [],
  unread: [{ kind, right: `list ${kind}`, why: "not permitted" }],
});
const notAttached: CSIDriver = { metadata: { name: DRIVER }, spec: { attachRequired: false } };
const source = (spec: object) => ({ volumes: [volume("pv-1", { spec: { csi: undefined, ...spec } })] });
const nothingAttached: Changes = { attachments: [], nodes: [node()], csiNodes: [] };
const startedAgo = (seconds: number) =>
  runningPod("web", {
    status: { containerStatuses: [{ name: "app", state: { running: { startedAt: ago(seconds) } } }] },
  });
const page = (volumeName: string, state = "mounted", synced = true): Changes => ({
  nodePages: [{ node: "node-a", synced, mounts: [{ volume: volumeName, podUid: "uid-web", state }] }],
});

describe("what agrees is healthy, however different the cluster", () => {
  for (const [name, changes, confidence] of [
    ["everything there", {}, "certain"],
    [
      "a driver that attaches nothing",
      { csiDrivers: [notAttached], attachments: [], nodes: [node()] },
      "certain",
    ],
    [
      "a driver that attaches nothing, on a node that names its volumes by pod",
      {
        ...{ csiDrivers: [notAttached], attachments: [], nodes: [node()] },
        ...page("kubernetes.io/csi/uid-web-pv-1"),
      },
      "certain",
    ],
    ["a hostPath", { ...source({ hostPath: { path: "/data" } }), ...nothingAttached }, "certain"],
    ["a local disk", { ...source({ local: { path: "/mnt/disk" } }), ...nothingAttached }, "certain"],
    ["NFS", { ...source({ nfs: { server: "s", path: "/" } }), ...nothingAttached }, "certain"],
    [
      "iSCSI",
      { ...source({ iscsi: { targetPortal: "10.0.0.1", iqn: "iqn.x", lun: 0 } }), ...nothingAttached },
      "certain",
    ],
    [
      "a CSI volume written into the pod",
      {
        pods: [runningPod("web", { spec: { volumes: [{ name: "data", csi: { driver: DRIVER } }] } })],
        ...{ claims: [], volumes: [], attachments: [], nodes: [node()] },
      },
      "certain",
    ],
    ["a pod that has just started: status lags", { pods: [startedAgo(3)], nodes: [node()] }, "certain"],
    [
      "a pod that ends: its volumes are on their way",
      { pods: [runningPod("web", { metadata: { deletionTimestamp: ago(-20) } })], nodes: [node()] },
      "certain",
    ],
    [
      "a node that attaches for itself",
      { attachments: [], nodes: [node("node-a", { metadata: { annotations: {} } })] },
      "certain",
    ],
    [
      "a shared volume on two nodes",
      {
        volumes: [volume("pv-1", { spec: { accessModes: ["ReadWriteMany"] } })],
        pods: [runningPod(), runningPod("other", { spec: { nodeName: "node-b" } })],
        attachments: [attachment(), attachment("node-b")],
        nodes: [usingNode(), usingNode("node-b")],
      },
      "certain",
    ],
    ["the node's own page agrees", page(UNIQUE), "certain"],
    ["the node's own page is not ready yet", page("x", "mounted", false), "certain"],
    ["VolumeAttachments that nobody may read", unread("attachments"), "likely"],
    ["CSIDrivers that nobody may read", { ...unread("csiDrivers"), attachments: [] }, "likely"],
    ["CSINodes that nobody may read", unread("csiNodes"), "likely"],
    ["nodes that nobody may read", unread("nodes"), "likely"],
    ["volumes that nobody may read", unread("volumes"), "likely"],
  ] as const satisfies readonly (readonly [string, Changes, string])[]) {
    test(name, () => {
      const answer = whyPod(changes);

      expect(answer.healthy).toBe(true);
      expect(answer.summary).toMatch(/ is (healthy|ending)/);
      expect(answer.contradictions).toEqual([]);
      expect(answer.confidence).toBe(confidence);
    });
  }
});

/** Each breaks one link of a pod that runs, and nothing else. */
const BROKEN: readonly (readonly [between: string, changes: Changes])[] = [
  ["pod and claim", { claims: [] }],
  ["claim and PersistentVolume", { volumes: [] }],
  ["claim and PersistentVolume", { claims: [claim("data", { status: { phase: "Lost" } })] }],
  [
    "PersistentVolume and claim",
    { volumes: [volume("pv-1", { spec: { claimRef: { namespace: "shop", name: "other", uid: "u" } } })] },
  ],
  ["PersistentVolume and claim", { volumes: [volume("pv-1", { status: { phase: "Released" } })] }],
  [
    "PersistentVolume and node",
    {
      volumes: [
        volume("pv-1", {
          spec: {
            nodeAffinity: {
              required: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] }],
              },
            },
          },
        }),
      ],
    },
  ],
  ["driver and node", { csiNodes: [csiNode("node-a", [])] }],
  ["pod and VolumeAttachment", { attachments: [] }],
  ["pod and VolumeAttachment", { attachments: [attachment("node-a", { status: { attached: false } })] }],
  [
    "pod and VolumeAttachment",
    { attachments: [attachment("node-a", { metadata: { deletionTimestamp: ago(90) } })] },
  ],
  [
    "VolumeAttachment and volumesAttached",
    { nodes: [usingNode("node-a", { status: { volumesAttached: [] } })] },
  ],
  ["volumesAttached and volumesInUse", { nodes: [usingNode("node-a", { status: { volumesInUse: [] } })] }],
  ["pod and its node's own page", page(UNIQUE, "not-mounted")],
  ["pod and its node's own page", page("another")],
];

describe("what contradicts is never healthy, and both facts are told", () => {
  for (const [between, changes] of BROKEN) {
    test(`${between}: ${Object.keys(changes).join(", ")}`, () => {
      const objects = createCluster(given(changes), NOW_MS);
      const found = objects.objects.pods
        .flatMap((pod) => volumeViewsOf(objects, pod))
        .flatMap(contradictionsOf);
      const answer = whyPod(changes);

      expect(found.map((item) => item.between)).toContain(between);
      expect(answer.healthy).toBe(false);
      expect(answer.contradictions.length).toBe(found.length);
    });
  }

  test("every agreement is broken by some row", () => {
    expect(new Set(BROKEN.map(([between]) => between))).toEqual(
      new Set(AGREEMENTS.map(({ between }) => between)),
    );
  });

  test("a cause that is known is named before what is only known to contradict", () => {
    const answer = whyPod({
      nodes: [usingNode("node-a", { ready: "Unknown", status: { volumesInUse: [] } })],
    });

    expect(answer.blocker?.reason).toBe("node-not-ready");
    expect(answer.contradictions).toHaveLength(1);
  });

  test("what no check explains is said to be unknown", () => {
    const answer = whyPod({ nodes: [usingNode("node-a", { status: { volumesInUse: [] } })] });

    expect(answer.confidence).toBe("unknown");
    expect(answer.summary).toBe(
      "I do not know what is wrong with pod shop/web; these facts contradict each other: pod shop/web runs on node node-a with the volume, but volumesInUse of node node-a does not list it.",
    );
  });
});
