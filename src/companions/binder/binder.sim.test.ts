import { expect, test } from "vitest";
import { persistentVolumes } from "../../kube/api/persistent-volume.ts";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { storageClasses } from "../kinds.ts";
import { BIND_COMPLETED, BOUND_BY_CONTROLLER } from "../names.ts";
import { given } from "../stage.testing.ts";

const SLOW = { storageClassName: "slow", resources: { requests: { storage: "1Gi" } } };

test("a claim gets the smallest volume that fits, and both say so", async () => {
  const world = await given();
  await world.createVolume("small", { capacity: { storage: "512Mi" } });
  await world.createVolume("large", { capacity: { storage: "8Gi" } });
  await world.createVolume("right", { capacity: { storage: "2Gi" } });
  await world.createVolume("other-class", { capacity: { storage: "1Gi" }, storageClassName: "other" });
  world.start();

  await world.createClaim("data", SLOW);
  await world.settle();

  const [claim, volume] = [await world.claim("data"), await world.volume("right")];
  expect(claim?.spec?.volumeName).toBe("right");
  expect(claim?.status).toEqual({
    phase: "Bound",
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "2Gi" },
  });
  expect(claim?.metadata.annotations).toEqual({ [BIND_COMPLETED]: "yes", [BOUND_BY_CONTROLLER]: "yes" });
  expect(volume?.spec?.claimRef).toMatchObject({ name: "data", uid: claim?.metadata.uid });
  expect(volume?.metadata.annotations).toEqual({ [BOUND_BY_CONTROLLER]: "yes" });
  expect(volume?.status?.phase).toBe("Bound");
  expect((await world.volume("large"))?.status?.phase).toBe("Available");
});

test("a claim that found nothing says why, and is bound as soon as a volume comes", async () => {
  const world = await given();
  world.start();
  await world.createClaim("data", { ...SLOW, storageClassName: "" });
  await world.settle();
  expect(world.events).toEqual([
    "PersistentVolumeClaim/data FailedBinding: no persistent volumes available for this claim and no storage class is set",
  ]);

  await world.createVolume("late", { storageClassName: "" });
  await world.settle();

  expect((await world.claim("data"))?.spec?.volumeName).toBe("late");
});

test("two claims and one volume: one gets it, the other waits and gets the next", async () => {
  const world = await given();
  await world.createVolume("only");
  world.start();
  await world.createClaim("a", SLOW);
  await world.createClaim("b", SLOW);
  await world.settle();
  const first = [await world.claim("a"), await world.claim("b")].map((claim) => claim?.status?.phase);
  expect(first.sort()).toEqual(["Bound", "Pending"]);

  await world.createVolume("second");
  await world.settle();

  expect([(await world.claim("a"))?.status?.phase, (await world.claim("b"))?.status?.phase]).toEqual([
    "Bound",
    "Bound",
  ]);
});

test("a volume promised to a claim by name waits for it and goes to nobody else", async () => {
  const world = await given();
  await world.createVolume("promised", { claimRef: { namespace: "default", name: "chosen" } });
  world.start();
  await world.createClaim("stranger", SLOW);
  await world.settle();
  expect((await world.claim("stranger"))?.status?.phase).toBe("Pending");
  expect((await world.volume("promised"))?.status?.phase).toBe("Available");

  await world.createClaim("chosen", SLOW);
  await world.settle();

  expect((await world.claim("chosen"))?.spec?.volumeName).toBe("promised");
  // A person wrote the name, so nobody but a person takes it back.
  expect((await world.volume("promised"))?.metadata.annotations).toBeUndefined();
});

test("a claim that names a volume takes that and no other, or says why it cannot", async () => {
  const world = await given();
  await world.createVolume("a");
  await world.createVolume("b", { capacity: { storage: "100Mi" } });
  world.start();
  await world.createClaim("wants-a", { ...SLOW, volumeName: "a" });
  await world.createClaim("wants-b", { ...SLOW, volumeName: "b" });
  await world.createClaim("wants-c", { ...SLOW, volumeName: "c" });
  await world.settle();

  expect((await world.claim("wants-a"))?.status?.phase).toBe("Bound");
  expect((await world.claim("wants-b"))?.status?.phase).toBe("Pending");
  expect(world.events).toEqual([
    'PersistentVolumeClaim/wants-b VolumeMismatch: Cannot bind to requested volume "b": requested PV is too small',
  ]);

  await world.createVolume("c");
  await world.settle();
  expect((await world.claim("wants-c"))?.status?.phase).toBe("Bound");
});

test("a claim whose volume is deleted under it is Lost, and found again when the volume comes back", async () => {
  const world = await given();
  await world.createVolume("v");
  world.start();
  await world.createClaim("data", SLOW);
  await world.settle();
  const finalizers = { type: "merge", value: { metadata: { finalizers: [] } } } as const;
  await world.client.patch(persistentVolumes, { name: "v" }, finalizers);

  await world.client.delete(persistentVolumes, { name: "v" });
  await world.settle();
  expect((await world.claim("data"))?.status?.phase).toBe("Lost");
  expect(world.events.at(-1)).toBe(
    "PersistentVolumeClaim/data ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!",
  );

  await world.createVolume("v");
  await world.settle();
  expect((await world.claim("data"))?.status?.phase).toBe("Bound");
});

test("a retained volume is Released when its claim goes, and nobody gets it until its claimRef is taken off", async () => {
  const world = await given();
  await world.createVolume("v");
  world.start();
  await world.createClaim("first", SLOW);
  await world.settle();

  await world.deleteClaim("first");
  await world.createClaim("second", SLOW);
  await world.settle();
  expect((await world.volume("v"))?.status?.phase).toBe("Released");
  expect((await world.claim("second"))?.status?.phase).toBe("Pending");

  await world.client.patch(
    persistentVolumes,
    { name: "v" },
    { type: "merge", value: { spec: { claimRef: null } } },
  );
  await world.settle();
  expect((await world.claim("second"))?.spec?.volumeName).toBe("v");
});

test("a volume that should be recycled is Failed with advice", async () => {
  const world = await given();
  await world.createVolume("v", { persistentVolumeReclaimPolicy: "Recycle" });
  world.start();
  await world.createClaim("data", SLOW);
  await world.settle();

  await world.deleteClaim("data");
  await world.settle();

  expect((await world.volume("v"))?.status?.phase).toBe("Failed");
  expect(world.events.at(-1)).toContain("VolumeFailedRecycle: Recycle is not supported");
});

test("a claim without a class is given the newest default class, also one that comes later", async () => {
  const world = await given();
  world.start();
  await world.client.create(persistentVolumeClaims, {
    metadata: { name: "data", namespace: "default" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "64Mi" } } },
  });
  await world.settle();
  expect((await world.claim("data"))?.status?.phase).toBe("Pending");

  const annotations = { "storageclass.kubernetes.io/is-default-class": "true" };
  await world.client.patch(
    storageClasses,
    { name: "fast" },
    { type: "merge", value: { metadata: { annotations } } },
  );
  await world.settle();

  expect((await world.claim("data"))?.spec?.storageClassName).toBe("fast");
  expect((await world.claim("data"))?.status?.phase).toBe("Bound");
});

test("a claim of a class nobody knows says so and goes on when the class comes", async () => {
  const world = await given();
  world.start();
  await world.createClaim("data", { storageClassName: "later" });
  await world.settle();
  expect(world.events).toEqual([
    'PersistentVolumeClaim/data ProvisioningFailed: storageclass.storage.k8s.io "later" not found',
  ]);

  await world.createClass("later");
  await world.settle();

  expect((await world.claim("data"))?.status?.phase).toBe("Bound");
});

test("a bound claim is not lost because a cache has not seen its volume yet", async () => {
  const world = await given();
  world.start();
  await world.settle();
  world.held.add("persistentvolumes");

  // As a binder before this one would have left them.
  await world.createVolume("v", { claimRef: { namespace: "default", name: "data" } });
  await world.createClaim("data", { ...SLOW, volumeName: "v" }, { annotations: { [BIND_COMPLETED]: "yes" } });
  await world.settle();

  expect((await world.claim("data"))?.status?.phase).toBe("Bound");
  expect(world.events).toEqual([]);
});

test("a volume that somebody else took meanwhile is not taken from him, however old the cache", async () => {
  const world = await given();
  await world.createVolume("v");
  world.start();
  await world.settle();
  world.held.add("persistentvolumes");
  const claimRef = { namespace: "default", name: "other", uid: "other" };
  await world.client.patch(
    persistentVolumes,
    { name: "v" },
    { type: "merge", value: { spec: { claimRef } } },
  );

  await world.createClaim("data", SLOW);
  await world.settle();

  expect((await world.volume("v"))?.spec?.claimRef).toMatchObject(claimRef);
  expect((await world.claim("data"))?.status?.phase).toBe("Pending");
});
