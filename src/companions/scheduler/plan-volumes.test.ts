import type { PodSpec, TopologySelectorTerm } from "kubernetes-types/core/v1.js";
import { describe, expect, test } from "vitest";
import type { Pod } from "../../kube/api/pod.ts";
import { SELECTED_NODE } from "../names.ts";
import {
  boundClaim,
  claim,
  pod,
  reachableFrom,
  storageClass,
  using,
  verdict,
  volume,
  volumeFor,
  type Table,
} from "./view.testing.ts";

const DRIVER = "csi.test";
const all = (why: string, nodes = 1) => `0/${nodes} nodes are available: ${why}.`;
const ephemeral: Partial<PodSpec> = {
  volumes: [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec: { accessModes: [] } } } }],
};
const going = { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } };

describe("a claim that has to be mended first", () => {
  for (const [what, spec, table, expected] of [
    ["missing", using("data"), {}, all('persistentvolumeclaim "data" not found')],
    [
      "missing, to be made for the pod",
      ephemeral,
      {},
      all('waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"'),
    ],
    [
      "made by somebody else",
      ephemeral,
      { claims: [boundClaim("web-scratch")] },
      all("PVC default/web-scratch was not created for pod default/web (pod is not owner)"),
    ],
    [
      "being deleted",
      using("data"),
      { claims: [claim("data", { volumeName: "pv-data" }, going)], volumes: [volumeFor("data")] },
      all('persistentvolumeclaim "data" is being deleted'),
    ],
    [
      "lost",
      using("data"),
      { claims: [claim("data", { volumeName: "pv-data" }, { status: { phase: "Lost" } })] },
      all('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-data"'),
    ],
    [
      "its volume is gone",
      using("data"),
      { claims: [boundClaim("data")] },
      all('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv-data"'),
    ],
    [
      "its volume is another's",
      using("data"),
      { claims: [boundClaim("data")], volumes: [volumeFor("data", volumeFor("other").spec)] },
      all(
        'persistentvolumeclaim "data" bound to persistentvolume "pv-data", which is bound to another claim',
      ),
    ],
    [
      "not bound, and bound at once",
      using("data"),
      { claims: [claim("data")], classes: [storageClass("later", { volumeBindingMode: "Immediate" })] },
      all("pod has unbound immediate PersistentVolumeClaims"),
    ],
    [
      "not bound, and of a class that is not there",
      using("data"),
      { claims: [claim("data")] },
      all("pod has unbound immediate PersistentVolumeClaims"),
    ],
    [
      "not bound, and with a volume that it has chosen",
      using("data"),
      {
        claims: [claim("data", { volumeName: "pv-data" }, { status: { phase: "Pending" } })],
        classes: [storageClass("later")],
      },
      all("pod has unbound immediate PersistentVolumeClaims"),
    ],
  ] as readonly (readonly [string, Partial<PodSpec>, Table, string])[]) {
    test(what, () => {
      expect(verdict(spec, table)).toBe(expected);
    });
  }

  test("for one pod at a time: a second one waits wherever it would go", () => {
    const table = {
      nodes: { a: {}, b: {} },
      claims: [boundClaim("data", { accessModes: ["ReadWriteOncePod"] })],
      volumes: [volumeFor("data")],
    };
    const other = pod("other", { ...using("data"), nodeName: "a" });

    expect(verdict(using("data"), table)).toBe("-> a");
    expect(verdict(using("data"), { ...table, pods: [other] })).toBe(
      "0/2 nodes are available: node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.",
    );
  });
});

describe("a bound claim", () => {
  const table = (more: Table): Table => ({
    claims: [boundClaim("data")],
    volumes: [volumeFor("data")],
    ...more,
  });

  test("goes where its volume can be reached", () => {
    const volumes = [volumeFor("data", { nodeAffinity: reachableFrom("b") })];

    expect(verdict(using("data"), table({ nodes: { a: {}, b: {} }, volumes }))).toBe("-> b");
    expect(verdict(using("data"), table({ nodes: { a: {} }, volumes }))).toBe(
      all("1 node(s) had volume node affinity conflict"),
    );
  });

  test("goes where its driver is registered, if anybody knows that driver", () => {
    expect(verdict(using("data"), table({ nodes: { a: {}, b: { drivers: { [DRIVER]: 5 } } } }))).toBe("-> b");
    expect(verdict(using("data"), table({ nodes: { a: {} } }))).toBe("-> a");
  });
});

describe("how many volumes a node takes", () => {
  const names = ["one", "two", "three"];
  const bound = {
    claims: names.map((name) => boundClaim(name)),
    volumes: names.map((name) => volumeFor(name)),
    classes: [storageClass("later")],
  };
  const on = (nodeName: string, ...claims: string[]): Pod =>
    pod(`user-of-${claims.join("-")}`, { ...using(...claims), nodeName });
  const attached = (name: string, volumeName: string) => ({
    metadata: { name },
    spec: { attacher: DRIVER, nodeName: "a", source: { persistentVolumeName: volumeName } },
  });
  const full = all("1 node(s) exceed max volume count");

  for (const [what, limit, spec, more, expected] of [
    ["room for one more", 2, using("one"), { pods: [on("a", "two")] }, "-> a"],
    ["full", 1, using("one"), { pods: [on("a", "two")] }, full],
    ["a volume that is there already needs no room", 1, using("two"), { pods: [on("a", "two")] }, "-> a"],
    ["nor where the node has too many", 0, using("two"), { pods: [on("a", "two")] }, "-> a"],
    [
      "two pods with one volume count once",
      2,
      using("one"),
      { pods: [on("a", "two"), on("a", "two")] },
      "-> a",
    ],
    [
      "what is attached still counts, used or not",
      1,
      using("one"),
      { attachments: [attached("va", "pv-two")] },
      full,
    ],
    ["attached and used counts once", 1, using("two"), { attachments: [attached("va", "pv-two")] }, "-> a"],
    ["attached without a volume counts", 1, using("one"), { attachments: [attached("va", "gone")] }, full],
    ["two at once", 1, using("one", "two"), {}, full],
    ["no limit", undefined, using("one", "two", "three"), {}, "-> a"],
    ["zero is a limit", 0, using("one"), {}, full],
    ["a pod without volumes", 0, {}, {}, "-> a"],
    [
      "a volume yet to be made counts",
      1,
      using("new"),
      { pods: [on("a", "two")], claims: [...bound.claims, claim("new")] },
      full,
    ],
    [
      "and that of another pod too",
      1,
      using("one"),
      { pods: [on("a", "new")], claims: [...bound.claims, claim("new")] },
      full,
    ],
    [
      "one claim in two pods, yet to be made, counts once",
      1,
      using("new"),
      { pods: [on("a", "new")], claims: [claim("new")] },
      "prepare a, new to be made",
    ],
  ] as readonly (readonly [string, number | undefined, Partial<PodSpec>, Table, string])[]) {
    test(`${what}: ${expected}`, () => {
      const nodes = { a: { drivers: { [DRIVER]: limit } } };

      expect(verdict(spec, { nodes, ...bound, ...more })).toBe(expected);
    });
  }

  test("an in-tree volume counts as the CSI volume it becomes", () => {
    const ebs = (volumeID: string) => ({ csi: undefined, awsElasticBlockStore: { volumeID } });
    const table = {
      nodes: { a: { drivers: { "ebs.csi.aws.com": 1 } } },
      claims: bound.claims,
      volumes: [volumeFor("one", ebs("vol-1") as object), volumeFor("two", ebs("vol-2") as object)],
    };

    expect(verdict(using("one"), table)).toBe("-> a");
    expect(verdict(using("one"), { ...table, pods: [on("a", "two")] })).toBe(full);
  });
});

describe("a claim that waits for its first pod", () => {
  const nodes = {
    a: { drivers: { [DRIVER]: undefined }, labels: { zone: "z1" } },
    b: { drivers: { [DRIVER]: undefined }, labels: { zone: "z2" } },
  };
  const later = (more: Table = {}): Table => ({
    nodes,
    claims: [claim("data")],
    classes: [storageClass("later")],
    ...more,
  });
  const selected = (node: string) =>
    claim("data", {}, { metadata: { annotations: { [SELECTED_NODE]: node } } });
  const zone = (value: string): TopologySelectorTerm[] => [
    { matchLabelExpressions: [{ key: "zone", values: [value] }] },
  ];
  const byHand = storageClass("later", { provisioner: "kubernetes.io/no-provisioner" });
  const nothing = all("2 node(s) didn't find available persistent volumes to bind", 2);

  for (const [what, table, expected] of [
    ["is made on the node of the pod", later(), "prepare a, data to be made"],
    [
      "is made where the class allows it",
      later({ classes: [storageClass("later", { allowedTopologies: zone("z2") })] }),
      "prepare b, data to be made",
    ],
    [
      "nowhere the class allows",
      later({ classes: [storageClass("later", { allowedTopologies: zone("z9") })] }),
      nothing,
    ],
    ["is made where the driver is", later({ nodes: { a: {}, b: nodes.b } }), "prepare b, data to be made"],
    [
      "takes a volume that is there",
      later({ volumes: [volume("old", { nodeAffinity: reachableFrom("b") })], classes: [byHand] }),
      "prepare b, old to data",
    ],
    [
      "takes the smallest that is large enough",
      later({
        volumes: [
          volume("large", { capacity: { storage: "9Gi" } }),
          volume("small", { capacity: { storage: "1Mi" } }),
          volume("middle", { capacity: { storage: "2Gi" } }),
        ],
      }),
      "prepare a, middle to data",
    ],
    [
      "takes none of another class",
      later({ volumes: [volume("x", { storageClassName: "y" })], classes: [byHand] }),
      nothing,
    ],
    ["takes none that is another's", later({ volumes: [volumeFor("other")], classes: [byHand] }), nothing],
    ["keeps the one it was promised", later({ volumes: [volumeFor("data")] }), "prepare a"],
    ["stays with the node it was promised to", later({ claims: [selected("b")] }), "prepare b"],
    [
      "cannot leave a node that has become impossible",
      later({ claims: [selected("b")], nodes: { ...nodes, b: { ...nodes.b, unschedulable: true } } }),
      "0/2 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 1 node(s) were unschedulable.",
    ],
    ["is free again when that node is gone", later({ claims: [selected("c")] }), "release data"],
  ] as readonly (readonly [string, Table, string])[]) {
    test(`${what}: ${expected}`, () => {
      expect(verdict(using("data"), table)).toBe(expected);
    });
  }

  test("two claims of one pod never get the same volume", () => {
    const table = later({
      claims: [claim("data"), claim("logs")],
      volumes: [volume("x"), volume("y")],
      classes: [byHand],
    });

    expect(verdict(using("data", "logs"), table)).toBe("prepare a, x to data, y to logs");
    expect(verdict(using("data", "logs"), { ...table, volumes: [volume("x")] })).toBe(nothing);
  });
});
