import { describe, expect, test } from "vitest";
import type { PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../kube/api/persistent-volume.ts";
import type { Pod } from "../kube/api/pod.ts";
import type { Seen } from "./objects-watch.ts";
import { volumeUsesOf, wishOf } from "./populate.ts";

const POD: Pod = { metadata: { name: "p1", namespace: "ns", uid: "u1" }, spec: { containers: [] } };
const MOUNTED = { mounted: true, asDevice: false };

function claim(more: Partial<PersistentVolumeClaim> = {}): PersistentVolumeClaim {
  return {
    metadata: { name: "c", namespace: "ns", uid: "c-uid" },
    spec: { volumeName: "pv1" },
    status: { phase: "Bound" },
    ...more,
  };
}

function volume(spec: NonNullable<PersistentVolume["spec"]> = {}): PersistentVolume {
  return {
    metadata: { name: "pv1" },
    spec: {
      volumeMode: "Filesystem",
      capacity: { storage: "1Gi" },
      claimRef: { uid: "c-uid" },
      csi: { driver: "d", volumeHandle: "h1" },
      ...spec,
    },
  };
}

function seen<T>(object: T | undefined): Seen<T> {
  return object === undefined ? { kind: "absent" } : { kind: "present", object };
}

function wish(
  {
    claim: c = claim(),
    volume: v = volume(),
  }: { claim?: PersistentVolumeClaim | undefined; volume?: PersistentVolume },
  { use = MOUNTED, ephemeral = false } = {},
) {
  const source = ephemeral
    ? { name: "v", ephemeral: {} }
    : { name: "v", persistentVolumeClaim: { claimName: "c" } };
  return wishOf(POD, source, use, { claim: () => seen(c), volume: () => seen(v) });
}

describe("what stands in the way is said in upstream's words", () => {
  const deleting = { name: "c", namespace: "ns", uid: "c-uid", deletionTimestamp: "2026-01-01T00:00:00Z" };
  for (const [name, given, message] of [
    [
      "scenario 4",
      { claim: claim({ status: { phase: "Pending" } }) },
      "error processing PVC ns/c: PVC is not bound",
    ],
    [
      "scenario 20",
      { claim: claim({ metadata: deleting }) },
      "error processing PVC ns/c: PVC is being deleted",
    ],
    [
      "an empty name",
      { claim: claim({ spec: {} }) },
      "error processing PVC ns/c: PVC has empty pvc.Spec.VolumeName",
    ],
    [
      "scenario 22",
      { volume: volume({ claimRef: { uid: "other" } }) },
      "error processing PVC ns/c: found PV object pv1 but its pv.Spec.ClaimRef.UID other does not point to claim.UID c-uid",
    ],
    ["scenario 24", { volume: volume({ volumeMode: "" }) }, "cannot get volumeMode for volume: pv1"],
    [
      "scenario 23",
      { volume: volume({ volumeMode: "Block" }) },
      "volume v has volumeMode Block, but is specified in volumeMounts",
    ],
  ] as const) {
    test(`${name}: ${message}`, () => {
      expect(wish(given)).toMatchObject({ kind: "refused", message });
    });
  }

  test("scenario 20: a claim that is going but protected is still used", () => {
    const metadata = { ...deleting, finalizers: ["kubernetes.io/pvc-protection"] };

    expect(wish({ claim: claim({ metadata }) }).kind).toBe("wanted");
  });

  test("scenario 21: an ephemeral volume takes no claim that another pod owns", () => {
    expect(wish({}, { ephemeral: true })).toMatchObject({
      kind: "refused",
      message: "PVC ns/p1-v was not created for pod ns/p1 (pod is not owner)",
    });
  });

  test("scenario 22: a volume without claimRef is not bound yet", () => {
    const { claimRef: _, ...spec } = volume().spec ?? {};

    expect(wish({ volume: { metadata: { name: "pv1" }, spec } })).toMatchObject({
      message: expect.stringContaining(
        "it has a nil pv.Spec.ClaimRef indicating it is not yet bound",
      ) as string,
    });
  });

  test("scenario 23: a file system as a device is refused the same way", () => {
    expect(wish({}, { use: { mounted: false, asDevice: true } })).toMatchObject({
      message: "volume v has volumeMode Filesystem, but is specified in volumeDevices",
    });
  });
});

test("scenario 29: an in-tree volume is handled as the CSI volume it is today", () => {
  const { csi: _, ...spec } = volume().spec ?? {};
  const inTree = {
    metadata: { name: "pv1" },
    spec: { ...spec, awsElasticBlockStore: { volumeID: "vol-0abc" } },
  };

  expect(wish({ volume: inTree })).toMatchObject({
    kind: "wanted",
    spec: {
      migrated: "volume",
      volume: { spec: { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-0abc" } } },
    },
  });
});

test("scenario 3: volumes of init and ephemeral containers are used", () => {
  const uses = volumeUsesOf({
    metadata: { name: "p" },
    spec: {
      containers: [{ name: "app", volumeDevices: [{ name: "raw", devicePath: "/dev/x" }] }],
      initContainers: [{ name: "init", volumeMounts: [{ name: "a", mountPath: "/a" }] }],
      ephemeralContainers: [{ name: "debug", volumeMounts: [{ name: "b", mountPath: "/b" }] }],
    },
  });

  expect([...uses.keys()].sort()).toEqual(["a", "b", "raw"]);
});
