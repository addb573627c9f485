import fc from "fast-check";
import { expect, test } from "vitest";
import { trimPersistentVolumeClaim, type PersistentVolumeClaim } from "./persistent-volume-claim.ts";

const identity = { name: "data", namespace: "shop", uid: "c-1", resourceVersion: "7" };

function claim(overrides: { metadata?: object; spec?: object; status?: object } = {}): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: {
      ...identity,
      creationTimestamp: "2025-01-01T00:00:00Z",
      labels: { app: "web" },
      annotations: { "pv.kubernetes.io/bind-completed": "yes" },
      managedFields: [{ manager: "kubectl" }],
      ...overrides.metadata,
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      volumeName: "pv-1",
      ...overrides.spec,
    },
    status: { phase: "Bound", capacity: { storage: "1Gi" }, ...overrides.status },
  };
}

test("a bound claim keeps who it is and to which volume it is bound", () => {
  expect(trimPersistentVolumeClaim(claim())).toStrictEqual({
    metadata: identity,
    spec: { volumeName: "pv-1" },
    status: { phase: "Bound" },
  });
});

for (const [spec, status] of [
  [{ volumeName: undefined }, { phase: "Pending" }],
  [{ volumeName: "" }, { phase: "Lost" }],
  [{ volumeName: "" }, { phase: "" }],
]) {
  test(`a claim without a volume that is ${JSON.stringify(status)} says so`, () => {
    const trimmed = trimPersistentVolumeClaim(claim({ spec: spec ?? {}, status: status ?? {} }));

    expect(trimmed).toStrictEqual({ metadata: identity, spec: {}, status });
  });
}

test("of its owners it keeps the controller, by UID", () => {
  const owner = { apiVersion: "v1", kind: "Pod", name: "web-0" };
  const ownerReferences = [
    { ...owner, uid: "u-0" },
    { ...owner, uid: "u-1", controller: true, blockOwnerDeletion: true },
  ];

  const owned = trimPersistentVolumeClaim(claim({ metadata: { ownerReferences } }));
  const disowned = trimPersistentVolumeClaim(
    claim({ metadata: { ownerReferences: ownerReferences.slice(0, 1) } }),
  );

  expect(owned.metadata.ownerReferences).toEqual([{ uid: "u-1", controller: true }]);
  expect(disowned.metadata).toStrictEqual(identity);
});

test("a claim without spec and status is unbound, and the original is left as it was", () => {
  const full = Object.freeze(claim());
  const before = structuredClone(full);

  expect(trimPersistentVolumeClaim({ metadata: { name: "new", namespace: "shop" } })).toMatchObject({
    metadata: { name: "new" },
    spec: {},
    status: { phase: "" },
  });
  trimPersistentVolumeClaim(full);

  expect(full).toEqual(before);
});

test("whatever stands in a claim, it is trimmed and not left out", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (ownerReferences, spec, status) => {
      const metadata = { name: "data", namespace: "shop", ownerReferences };
      const broken = { metadata, spec, status } as unknown as PersistentVolumeClaim;

      expect(trimPersistentVolumeClaim(broken).metadata.name).toBe("data");
    }),
    { numRuns: 200 },
  );
});
