import { describe, expect, test } from "vitest";
import { changing, creating, given, kindOf, NOW, NOW_TEXT, stored } from "./given.testing.ts";
import { rulesFor } from "./rules.ts";

const SPEC = { accessModes: ["ReadWriteOnce"], capacity: { storage: "1Gi" } };
const CSI = { driver: "d.io", volumeHandle: "h" };
const AFFINITY = {
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "Exists" }] }] },
};
const rules = rulesFor(kindOf("PersistentVolume"));

describe("sources", () => {
  for (const [what, spec, causes] of [
    ["csi", { csi: CSI }, []],
    [
      "csi without anything",
      { csi: {} },
      ["Required spec.csi.driver", "Invalid spec.csi.driver", "Required spec.csi.volumeHandle"],
    ],
    [
      "half a secret",
      { csi: { ...CSI, nodeStageSecretRef: { name: "s" } } },
      ["Required spec.csi.nodeStageSecretRef.namespace"],
    ],
    ["local, and nobody knows where", { local: { path: "/a" } }, ["Required spec.nodeAffinity"]],
    ["local on known nodes", { local: { path: "/a" }, nodeAffinity: AFFINITY }, []],
    ["a path that climbs", { hostPath: { path: "/a/../b" } }, ["Invalid spec.hostPath.path"]],
    [
      "a host path of no known type",
      { hostPath: { path: "/a", type: "Pipe" } },
      ["NotSupported spec.hostPath.type"],
    ],
    ["nfs with a relative path", { nfs: { server: "s", path: "a" } }, ["Invalid spec.nfs.path"]],
    ["rbd without monitors", { rbd: { image: "i", monitors: [] } }, ["Required spec.rbd.monitors"]],
    [
      "the whole machine, to be emptied",
      { hostPath: { path: "/" }, persistentVolumeReclaimPolicy: "Recycle" },
      ["Forbidden spec.persistentVolumeReclaimPolicy"],
    ],
    [
      "attributes without csi",
      { hostPath: { path: "/a" }, volumeAttributesClassName: "g" },
      ["Required spec.csi"],
    ],
    [
      "attributes of an empty name",
      { csi: CSI, volumeAttributesClassName: "" },
      ["Required spec.volumeAttributesClassName"],
    ],
    ["a second amount", { csi: CSI, capacity: { storage: "1Gi", cpu: "1" } }, ["NotSupported spec.capacity"]],
    [
      "an operator without values",
      {
        csi: CSI,
        nodeAffinity: {
          required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "In" }] }] },
        },
      },
      ["Required spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values"],
    ],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(creating("PersistentVolume", { spec: { ...SPEC, ...spec } })).toEqual(causes);
    });
  }

  test("old kinds of volumes get what their drivers take for granted", () => {
    const spec = (source: object) =>
      rules.applyDefaults(given("PersistentVolume", { spec: { ...SPEC, ...source } }))["spec"];

    expect(spec({ hostPath: { path: "/a" } })).toMatchObject({ hostPath: { path: "/a", type: "" } });
    expect(spec({ rbd: { image: "i", pool: "p" } })).toMatchObject({
      rbd: { image: "i", pool: "p", user: "admin" },
    });
    expect(spec({ azureDisk: { diskName: "d" } })).toMatchObject({
      azureDisk: { kind: "Shared", readOnly: false },
    });
  });
});

describe("what of a volume may change", () => {
  const volume = (spec: object) => stored("PersistentVolume", { spec: { ...SPEC, csi: CSI, ...spec } });
  const secret = { name: "s", namespace: "n" };

  for (const [what, old, wanted, causes] of [
    ["the secret for growing it, once", {}, { csi: { ...CSI, controllerExpandSecretRef: secret } }, []],
    [
      "that secret again",
      { csi: { ...CSI, controllerExpandSecretRef: secret } },
      { csi: { ...CSI, controllerExpandSecretRef: { ...secret, name: "t" } } },
      ["Forbidden spec.persistentvolumesource"],
    ],
    [
      "another secret",
      {},
      { csi: { ...CSI, nodeStageSecretRef: secret } },
      ["Forbidden spec.persistentvolumesource"],
    ],
    ["attributes class", { volumeAttributesClassName: "a" }, { volumeAttributesClassName: "b" }, []],
    [
      "no attributes class any more",
      { volumeAttributesClassName: "a" },
      {},
      ["Forbidden spec.volumeAttributesClassName"],
    ],
    ["nowhere any more", { nodeAffinity: AFFINITY }, {}, ["Invalid nodeAffinity"]],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(changing("PersistentVolume", volume(old), volume(wanted))).toEqual(causes);
    });
  }
});

describe("when a phase began", () => {
  const old = {
    ...stored("PersistentVolume", { spec: { ...SPEC, csi: CSI } }),
    status: { phase: "Available", lastPhaseTransitionTime: "2026-01-01T00:00:00Z" },
  };
  const setting = (status: object) =>
    rules.prepareStatusUpdate({ ...old, status }, old, { now: NOW })["status"];

  test("is noted at creation and whenever the phase changes", () => {
    expect(stored("PersistentVolume", { spec: { ...SPEC, csi: CSI } })["status"]).toEqual({
      phase: "Pending",
      lastPhaseTransitionTime: NOW_TEXT,
    });
    expect(setting({ ...old.status, phase: "Bound" })).toEqual({
      phase: "Bound",
      lastPhaseTransitionTime: NOW_TEXT,
    });
  });

  test("is what the writer says, if it says something new", () => {
    const lastPhaseTransitionTime = "2026-02-02T00:00:00Z";

    expect(setting({ phase: "Bound", lastPhaseTransitionTime })).toEqual({
      phase: "Bound",
      lastPhaseTransitionTime,
    });
  });

  test("stays while the phase does", () => {
    expect(setting({ ...old.status, reason: "r" })).toEqual({ ...old.status, reason: "r" });
  });
});

describe("a volume described within a VolumeAttachment", () => {
  const attaching = (inlineVolumeSpec: object) =>
    creating("VolumeAttachment", { spec: { attacher: "d.io", nodeName: "n", source: { inlineVolumeSpec } } });

  test("is a source and how it is accessed, nothing else", () => {
    expect(attaching({ csi: CSI, accessModes: ["ReadWriteOnce"] })).toEqual([]);
    expect(attaching({ ...SPEC, csi: CSI })).toEqual(["Forbidden spec.source.inlineVolumeSpec.capacity"]);
  });

  test("must be csi by the time it gets here", () => {
    expect(attaching({ accessModes: ["ReadWriteOnce"], hostPath: { path: "/a" } })).toEqual([
      "Required spec.source.inlineVolumeSpec.csi",
    ]);
  });
});
