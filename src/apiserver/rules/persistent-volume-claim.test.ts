import { describe, expect, test } from "vitest";
import type { ApiObject } from "../objects.ts";
import { changing, creating, given, kindOf, NOW, stored } from "./given.testing.ts";
import { rulesFor } from "./rules.ts";

const SPEC = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "2Gi" } } };

/** A claim as it is stored, bound to a volume of 1Gi unless said otherwise. */
function claim(
  spec: object = {},
  status: object = { phase: "Bound", capacity: { storage: "1Gi" } },
): ApiObject {
  return { ...stored("PersistentVolumeClaim", { spec: { ...SPEC, ...spec } }), status };
}

function wanting(spec: object): ApiObject {
  return given("PersistentVolumeClaim", { spec: { ...SPEC, ...spec } });
}

const storage = (amount: string) => ({ resources: { requests: { storage: amount } } });
const PENDING = { phase: "Pending" };

describe("what of a claim may change", () => {
  for (const [what, old, wanted, causes] of [
    ["nothing", claim(), wanting({}), []],
    ["an amount that is only written differently", claim(), wanting(storage("2048Mi")), []],
    ["growth, while bound", claim(), wanting(storage("3Gi")), []],
    ["growth, while not bound", claim({}, PENDING), wanting(storage("3Gi")), ["Forbidden spec"]],
    ["shrinking to above what is there", claim(), wanting(storage("1536Mi")), []],
    [
      "shrinking to what is there",
      claim(),
      wanting(storage("1Gi")),
      ["Forbidden spec.resources.requests.storage"],
    ],
    ["a volume, once", claim({}, PENDING), wanting({ volumeName: "v" }), []],
    ["another volume", claim({ volumeName: "v" }), wanting({ volumeName: "w" }), ["Forbidden spec"]],
    ["no volume any more", claim({ volumeName: "v" }), wanting({}), ["Forbidden spec"]],
    ["a class, where there was none", claim({}, PENDING), wanting({ storageClassName: "c" }), []],
    [
      "a class, where there was the one that is none",
      claim({ storageClassName: "" }),
      wanting({ storageClassName: "c" }),
      ["Forbidden spec"],
    ],
    [
      "another class",
      claim({ storageClassName: "c" }),
      wanting({ storageClassName: "d" }),
      ["Forbidden spec"],
    ],
    ["an attributes class, while bound", claim(), wanting({ volumeAttributesClassName: "a" }), []],
    [
      "an attributes class, while not bound",
      claim({}, PENDING),
      wanting({ volumeAttributesClassName: "a" }),
      ["Forbidden spec"],
    ],
    [
      "no attributes class any more",
      claim({ volumeAttributesClassName: "a" }),
      wanting({}),
      ["Forbidden spec.volumeAttributesClassName"],
    ],
    ["the volume mode", claim(), wanting({ volumeMode: "Block" }), ["Forbidden spec", "Invalid volumeMode"]],
  ] as const) {
    test(`${what}: ${causes.join() || "good"}`, () => {
      expect(changing("PersistentVolumeClaim", old, wanted)).toEqual(causes);
    });
  }

  test("the class of an old annotation may move into the field, and then not change", () => {
    const key = "volume.beta.kubernetes.io/storage-class";
    const old = given(
      "PersistentVolumeClaim",
      { spec: { ...SPEC, volumeMode: "Filesystem" } },
      { annotations: { [key]: "c" } },
    );

    const moved = changing("PersistentVolumeClaim", old, wanting({ storageClassName: "c" }));
    const changed = changing("PersistentVolumeClaim", old, wanting({ storageClassName: "d" }));

    expect(moved).toEqual([]);
    expect(changed).toEqual(["Forbidden spec", "Invalid metadata.annotations"]);
  });
});

describe("data sources", () => {
  const snapshot = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" };
  const other = { apiGroup: "x.io", kind: "Any", name: "a" };
  const rules = rulesFor(kindOf("PersistentVolumeClaim"));
  const prepare = (spec: object) => rules.prepareCreate(wanting(spec), { now: NOW })["spec"];

  test("either spelling is copied into the other", () => {
    const both = { dataSource: snapshot, dataSourceRef: snapshot };

    expect(prepare({ dataSource: snapshot })).toMatchObject(both);
    expect(prepare({ dataSourceRef: snapshot })).toMatchObject(both);
  });

  test("what the older cannot name is dropped from it, also when a claim is changed later", () => {
    expect(prepare({ dataSource: other })).toEqual(SPEC);
    expect(rules.prepareUpdate(wanting({ dataSource: other }), claim(), { now: NOW })["spec"]).toEqual(SPEC);
  });

  test("a claim that was stored with a source keeps it", () => {
    const old = claim({ dataSource: other, dataSourceRef: other });
    const stays = rules.prepareUpdate(wanting({ dataSource: other, dataSourceRef: other }), old, {
      now: NOW,
    });

    expect(stays["spec"]).toMatchObject({ dataSource: other, dataSourceRef: other });
  });

  test("a source in another namespace has no older spelling", () => {
    expect(prepare({ dataSourceRef: { ...other, namespace: "n" } })).not.toHaveProperty("dataSource");
  });

  test("two sources must be one", () => {
    const clone = { kind: "PersistentVolumeClaim", name: "b" };

    expect(
      creating("PersistentVolumeClaim", { spec: { ...SPEC, dataSource: clone, dataSourceRef: snapshot } }),
    ).toEqual(["Invalid spec"]);
  });

  test("a source needs a kind and a name, and outside of any group there are only claims", () => {
    expect(creating("PersistentVolumeClaim", { spec: { ...SPEC, dataSourceRef: { kind: "Any" } } })).toEqual([
      "Required spec.dataSource.name",
      "Invalid spec.dataSource",
      "Required spec.dataSourceRef.name",
      "Invalid spec.dataSourceRef",
    ]);
  });
});

test("capacity in a status is never negative", () => {
  const rules = rulesFor(kindOf("PersistentVolumeClaim"));
  const object = { ...claim(), status: { capacity: { storage: "-1" } } };

  expect(rules.validateStatusUpdate(object, claim())).toMatchObject([{ field: "status.capacity[storage]" }]);
});
