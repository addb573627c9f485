import { describe, expect, test } from "vitest";
import type { CSINode } from "../../kube/api/csi-node.ts";
import type { Node } from "../../kube/api/node.ts";
import { claim, content, OURS, ref, snapshot, storageClass, volume } from "../objects.testing.ts";
import { readParameters } from "./parameters.ts";
import { fromClaim, fromSnapshot } from "./source.ts";
import { planTopology, toNodeSelectorTerms, type TopologyView } from "./topology.ts";

describe("the parameters of a class", () => {
  test("what is for the cluster does not reach the driver", () => {
    const parameters = {
      kind: "thin",
      "csi.storage.k8s.io/fstype": "xfs",
      "csi.storage.k8s.io/provisioner-secret-name": "s-${pvc.name}",
      "csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
      "csi.storage.k8s.io/node-stage-secret-name": "${pvc.annotations['team']}",
      "csi.storage.k8s.io/node-stage-secret-namespace": "vault",
    };

    const read = readParameters(
      storageClass({ parameters }),
      claim({ metadata: { annotations: { team: "red" } } }),
    );

    expect(read.driver).toEqual({ kind: "thin" });
    expect(read.fsType).toBe("xfs");
    expect(read.secrets.provisioner).toEqual({ name: "s-data", namespace: "default" });
    expect(read.secrets.nodeStage).toEqual({ name: "red", namespace: "vault" });
    expect(read.secrets.nodePublish).toBeUndefined();
  });

  for (const [what, parameters, message] of [
    ["half a secret", { "csi.storage.k8s.io/provisioner-secret-name": "s" }, "but not both"],
    ["a reserved word nobody knows", { "csi.storage.k8s.io/fancy": "x" }, "none of those known"],
    [
      "a template that stands for nothing",
      {
        "csi.storage.k8s.io/provisioner-secret-name": "${pod.name}",
        "csi.storage.k8s.io/provisioner-secret-namespace": "x",
      },
      "stands for nothing",
    ],
  ] as const) {
    test(`${what} is refused before the driver is asked`, () => {
      expect(() => readParameters(storageClass({ parameters }), claim())).toThrow(message);
    });
  }
});

const KEY = "zone";
const csiNode = (name: string, keys = [KEY]): CSINode => ({
  metadata: { name },
  spec: { drivers: [{ name: OURS, nodeID: name, topologyKeys: keys }] },
});
const node = (name: string, zone: string | undefined): Node => ({
  metadata: { name, labels: zone === undefined ? {} : { [KEY]: zone } },
});

describe("where a volume may be", () => {
  const nodes = new Map([
    ["a", node("a", "z1")],
    ["b", node("b", "z2")],
    ["c", node("c", "z2")],
    ["d", node("d", undefined)],
  ]);
  const wish = (members: Partial<TopologyView> = {}) =>
    planTopology({
      driver: OURS,
      csiNodes: ["a", "b", "c", "d"].map((name) => csiNode(name)),
      nodeOf: (name) => nodes.get(name),
      selected: undefined,
      allowed: [],
      ...members,
    })?.requisite.map(({ segments }) => segments[KEY]);

  test("everywhere the driver is, each place once", () => expect(wish()).toEqual(["z1", "z2"]));
  test("the chosen node's place first", () => expect(wish({ selected: "b" })).toEqual(["z2", "z1"]));
  test("nowhere, where nobody says where", () => expect(wish({ csiNodes: [] })).toBeUndefined());
  test("only where the class allows it", () => {
    const allowed = [{ matchLabelExpressions: [{ key: KEY, values: ["z2"] }] }];

    expect(wish({ allowed })).toEqual(["z2"]);
    expect(() => wish({ allowed, selected: "a" })).toThrow("allowedTopologies");
  });
  test("not on a node that has not said where it is", () => {
    expect(() => wish({ selected: "d" })).toThrow('node "d" has not registered driver csi.test');
    expect(() => wish({ selected: "gone" })).toThrow('node "gone"');
  });

  test("pods may run in any place the driver named", () => {
    expect(toNodeSelectorTerms([{ segments: { b: "2", a: "1" } }, { segments: {} }])).toEqual([
      {
        matchExpressions: [
          { key: "a", operator: "In", values: ["1"] },
          { key: "b", operator: "In", values: ["2"] },
        ],
      },
    ]);
  });
});

describe("what a volume is made of", () => {
  const wish = { claim: claim(), driver: OURS, sizeBytes: 1n << 30n, unwanted: false };
  const ready = snapshot({ status: { readyToUse: true, restoreSize: "1Gi" } });
  const cut = content({ status: { snapshotHandle: "snap-1" } });
  const restore = (members: object = {}, of = wish) =>
    fromSnapshot(of, { name: "s", snapshot: ready, content: cut, ...members });

  test("a snapshot that is ready gives its handle", () => {
    expect(restore()).toEqual({ type: { case: "snapshot", value: { snapshotId: "snap-1" } } });
  });

  for (const [why, members, message] of [
    ["missing", { snapshot: undefined }, "does not exist"],
    ["not ready", { snapshot: snapshot() }, "not ready to use"],
    [
      "going",
      { snapshot: { ...ready, metadata: { ...ready.metadata, deletionTimestamp: "now" } } },
      "being deleted",
    ],
    ["of another driver", { content: content({ ...cut, spec: { driver: "x" } }) }, "is of driver x"],
    [
      "not the one its content names",
      {
        content: content({
          ...cut,
          spec: { volumeSnapshotRef: { name: "s", namespace: "default", uid: "x" } },
        }),
      },
      "is not the one",
    ],
    [
      "of the other mode",
      { content: content({ ...cut, spec: { sourceVolumeMode: "Block" } }) },
      "another mode",
    ],
  ] as const) {
    test(`a snapshot that is ${why} gives nothing`, () => expect(() => restore(members)).toThrow(message));
  }

  test("a claim for less than the snapshot needs is refused", () => {
    expect(() => restore({}, { ...wish, sizeBytes: (1n << 30n) - 1n })).toThrow("needs 1073741824 bytes");
  });

  test("one that is going is good enough to learn what an earlier request came to", () => {
    const going = { ...ready, metadata: { ...ready.metadata, deletionTimestamp: "now" } };

    expect(() => restore({ snapshot: going }, { ...wish, unwanted: true })).not.toThrow();
  });

  const source = claim({ status: { phase: "Bound" } });
  const clone = (members: object = {}) =>
    fromClaim(wish, {
      name: "data",
      claim: source,
      volume: volume({ spec: { claimRef: ref() } }),
      ...members,
    });

  test("a bound claim of the driver gives its volume", () => {
    expect(clone()).toEqual({ type: { case: "volume", value: { volumeId: "h" } } });
  });

  for (const [why, members, message] of [
    ["missing", { claim: undefined }, "does not exist"],
    ["not bound", { claim: claim() }, "not bound"],
    [
      "of another driver",
      { volume: volume({ spec: { claimRef: ref(), csi: { driver: "x", volumeHandle: "h" } } }) },
      "not a volume of driver",
    ],
    [
      "larger",
      { volume: volume({ spec: { claimRef: ref(), capacity: { storage: "2Gi" } } }) },
      "has 2147483648 bytes",
    ],
    [
      "of the other mode",
      { volume: volume({ spec: { claimRef: ref(), volumeMode: "Block" } }) },
      "of mode Block",
    ],
  ] as const) {
    test(`a claim that is ${why} gives nothing`, () => expect(() => clone(members)).toThrow(message));
  }
});
