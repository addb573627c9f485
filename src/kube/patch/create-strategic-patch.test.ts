import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createStrategicPatch } from "./create-strategic-patch.ts";
import { csiNodePatchSchema, nodePatchSchema, podPatchSchema } from "./patch-schema.ts";
import { applyStrategicPatch } from "./strategic-patch.ts";

const NODE = {
  metadata: { name: "n", finalizers: ["x.io/a", "x.io/b"] },
  status: {
    conditions: [
      { type: "Ready", status: "True", lastProbeTime: null },
      { type: "DiskPressure", status: "False" },
    ],
    volumesInUse: ["v1", "v2"],
  },
};

test("equal objects take no patch, and neither do those that differ in nulls", () => {
  const [ready, pressure] = NODE.status.conditions;

  expect(createStrategicPatch(NODE, structuredClone(NODE), nodePatchSchema)).toBeUndefined();
  expect(
    createStrategicPatch(
      NODE,
      {
        ...NODE,
        status: { ...NODE.status, conditions: [ready, { ...pressure, reason: null }], phase: null },
      },
      nodePatchSchema,
    ),
  ).toBeUndefined();
});

test("a condition that changes is sent alone, with the order of all", () => {
  const after = structuredClone(NODE);
  after.status.conditions[1]!.status = "True";

  expect(createStrategicPatch(NODE, after, nodePatchSchema)).toEqual({
    status: {
      "$setElementOrder/conditions": [{ type: "Ready" }, { type: "DiskPressure" }],
      conditions: [{ type: "DiskPressure", status: "True" }],
    },
  });
});

test("a condition that goes is deleted by its key", () => {
  const after = structuredClone(NODE);
  after.status.conditions.shift();

  expect(createStrategicPatch(NODE, after, nodePatchSchema)).toEqual({
    status: {
      "$setElementOrder/conditions": [{ type: "DiskPressure" }],
      conditions: [{ $patch: "delete", type: "Ready" }],
    },
  });
});

test("a finalizer that goes is named in the parallel list", () => {
  const after = { ...NODE, metadata: { name: "n", finalizers: ["x.io/b"] } };

  expect(createStrategicPatch(NODE, after, nodePatchSchema)).toEqual({
    metadata: {
      "$deleteFromPrimitiveList/finalizers": ["x.io/a"],
      "$setElementOrder/finalizers": ["x.io/b"],
    },
  });
});

test("volumesInUse is sent whole, as the server replaces it", () => {
  const after = { ...NODE, status: { ...NODE.status, volumesInUse: ["v2"] } };

  expect(createStrategicPatch(NODE, after, nodePatchSchema)).toEqual({ status: { volumesInUse: ["v2"] } });
});

test("two addresses of one type are sent whole, or one of them would be lost", () => {
  const address = (address: string) => ({ type: "InternalIP", address });
  const before = { status: { addresses: [address("10.0.0.1")] } };
  const after = { status: { addresses: [address("10.0.0.1"), address("fd00::1")] } };

  const patch = createStrategicPatch(before, after, nodePatchSchema);

  expect(patch).toEqual({ status: { addresses: [{ $patch: "replace" }, ...after.status.addresses] } });
  expect(applyStrategicPatch(before, patch, nodePatchSchema)).toEqual(after);
});

test("a volume that changes its source says which keys stay", () => {
  const before = { spec: { volumes: [{ name: "v", emptyDir: {} }] } };
  const after = { spec: { volumes: [{ name: "v", hostPath: { path: "/x" } }] } };

  expect(createStrategicPatch(before, after, podPatchSchema)).toEqual({
    spec: {
      "$setElementOrder/volumes": [{ name: "v" }],
      volumes: [{ name: "v", emptyDir: null, hostPath: { path: "/x" }, $retainKeys: ["hostPath", "name"] }],
    },
  });
});

test("a driver another agent registered meanwhile survives our patch", () => {
  const driver = (name: string, nodeID = "n") => ({ name, nodeID });
  const seen = { spec: { drivers: [driver("a"), driver("b")] } };
  const wanted = { spec: { drivers: [driver("a", "n2"), driver("c")] } };
  const stored = { spec: { drivers: [driver("a"), driver("other"), driver("b")] } };

  const result = applyStrategicPatch(
    stored,
    createStrategicPatch(seen, wanted, csiNodePatchSchema),
    csiNodePatchSchema,
  );

  expect(result).toEqual({ spec: { drivers: [driver("a", "n2"), driver("c"), driver("other")] } });
});

test("there is none between things that are no objects", () => {
  expect(() => createStrategicPatch({}, null, nodePatchSchema)).toThrow(
    "BadInput: a strategic merge patch is made",
  );
});

describe("for all pods", () => {
  const text = fc.constantFrom("1", "2", "3");
  const optional = { requiredKeys: [] };
  const named = <T>(element: fc.Arbitrary<T>, key: string) =>
    fc.uniqueArray(element, { maxLength: 4, selector: (item) => (item as Record<string, unknown>)[key] });
  const name = fc.constantFrom("a", "b", "c", "d");

  const container = fc.record(
    {
      name,
      image: text,
      args: fc.array(text, { maxLength: 3 }),
      env: named(fc.record({ name, value: text }), "name"),
      ports: named(fc.record({ containerPort: fc.nat({ max: 3 }), protocol: text }), "containerPort"),
      resources: fc.record({ limits: fc.dictionary(name, text) }, optional),
    },
    { requiredKeys: ["name"] },
  );
  const volume = fc.record(
    { name, emptyDir: fc.record({ medium: text }, optional), hostPath: fc.record({ path: text }) },
    { requiredKeys: ["name"] },
  );
  const pod = fc.record(
    {
      metadata: fc.record(
        {
          labels: fc.dictionary(name, text),
          finalizers: fc.uniqueArray(name, { maxLength: 4 }),
          ownerReferences: named(fc.record({ uid: name, name: text }), "uid"),
        },
        optional,
      ),
      spec: fc.record(
        {
          nodeName: text,
          containers: named(container, "name"),
          volumes: named(volume, "name"),
          tolerations: fc.array(fc.record({ key: name }), { maxLength: 3 }),
        },
        optional,
      ),
    },
    optional,
  );

  test("the patch between two, applied to the first, gives the second, order included", () => {
    fc.assert(
      fc.property(pod, pod, (before, after) => {
        const texts = [JSON.stringify(before), JSON.stringify(after)];

        const patch = createStrategicPatch(before, after, podPatchSchema);

        expect(applyStrategicPatch(before, patch ?? {}, podPatchSchema)).toEqual(after);
        expect([JSON.stringify(before), JSON.stringify(after)]).toEqual(texts);
      }),
      { numRuns: 2_000 },
    );
  });

  test("applying such a patch a second time changes nothing", () => {
    fc.assert(
      fc.property(pod, pod, (before, after) => {
        const patch = createStrategicPatch(before, after, podPatchSchema) ?? {};
        const once = applyStrategicPatch(before, patch, podPatchSchema);

        expect(applyStrategicPatch(once, patch, podPatchSchema)).toBe(once);
      }),
      { numRuns: 1_000 },
    );
  });
});
