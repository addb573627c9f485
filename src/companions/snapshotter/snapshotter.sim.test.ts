import { expect, test } from "vitest";
import {
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
  type VolumeSnapshot,
  type VolumeSnapshotContent,
} from "../kinds.ts";
import { DRIVER, given, type StorageWorld } from "../stage.testing.ts";
import { found } from "../writes.ts";
import { BEING_CREATED, CLAIM_SOURCE_FINALIZER, DEFAULT_SNAPSHOT_CLASS } from "./names.ts";

async function bound(world: StorageWorld, deletionPolicy: "Delete" | "Retain" = "Delete"): Promise<void> {
  await world.client.create(volumeSnapshotClasses, {
    metadata: { name: "snap", annotations: { [DEFAULT_SNAPSHOT_CLASS]: "true" } },
    driver: DRIVER,
    deletionPolicy,
  });
  world.start();
  await world.createClaim("data");
  await world.settle();
}

async function cut(world: StorageWorld, name: string, claim = "data"): Promise<void> {
  await world.client.create(volumeSnapshots, {
    metadata: { name, namespace: "default" },
    spec: { source: { persistentVolumeClaimName: claim } },
  });
}

const snapshot = (world: StorageWorld, name: string): Promise<VolumeSnapshot | undefined> =>
  found(world.client.get(volumeSnapshots, { name, namespace: "default" }));
const remove = (world: StorageWorld, name: string) =>
  world.client.delete(volumeSnapshots, { name, namespace: "default" });
const contentsOf = (world: StorageWorld): VolumeSnapshotContent[] => world.list(volumeSnapshotContents);

test("a snapshot of a bound claim is cut by the default class, and both halves say so", async () => {
  const world = await given();
  await bound(world);

  await cut(world, "s1");
  await world.settle();

  const made = await snapshot(world, "s1");
  const [content] = contentsOf(world);
  expect(made?.spec.volumeSnapshotClassName).toBe("snap");
  expect(made?.status).toMatchObject({
    boundVolumeSnapshotContentName: `snapcontent-${made?.metadata.uid}`,
    readyToUse: true,
    restoreSize: "64Mi",
  });
  expect(content?.spec).toMatchObject({
    deletionPolicy: "Delete",
    driver: DRIVER,
    sourceVolumeMode: "Filesystem",
  });
  expect(content?.spec.volumeSnapshotRef).toMatchObject({ name: "s1", uid: made?.metadata.uid });
  expect(content?.status?.snapshotHandle).toBeTruthy();
  expect(content?.metadata.annotations).toBeUndefined();
  // Nothing of it holds the claim any more.
  expect((await world.claim("data"))?.metadata.finalizers).not.toContain(CLAIM_SOURCE_FINALIZER);
  expect(world.driver.counts().snapshots).toBe(1);

  await remove(world, "s1");
  await world.settle();

  expect(await snapshot(world, "s1")).toBeUndefined();
  expect(contentsOf(world)).toEqual([]);
  expect(world.driver.counts().snapshots).toBe(0);
});

test("with Retain the content and the driver's snapshot stay", async () => {
  const world = await given();
  await bound(world, "Retain");
  await cut(world, "s1");
  await world.settle();

  await remove(world, "s1");
  await world.settle();

  expect(await snapshot(world, "s1")).toBeUndefined();
  expect(contentsOf(world)).toHaveLength(1);
  expect(world.driver.counts().snapshots).toBe(1);
});

test("a claim made from a snapshot is filled from it, waits until it is ready, and holds it meanwhile", async () => {
  const world = await given();
  await bound(world);
  const dataSource = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s1" };
  await world.createClaim("restored", { dataSource });
  await world.settle();
  expect(world.events.at(-1)).toContain('snapshot "s1" does not exist');

  await cut(world, "s1");
  await world.advance(2_000);

  expect((await world.claim("restored"))?.status?.phase).toBe("Bound");
  await remove(world, "s1");
  await world.settle();
  expect(await snapshot(world, "s1")).toBeUndefined();
});

test("a snapshot that somebody made elsewhere is bound by its handle", async () => {
  const world = await given();
  await bound(world, "Retain");
  await cut(world, "s1");
  await world.settle();
  const handle = contentsOf(world)[0]?.status?.snapshotHandle ?? "";
  await world.client.create(volumeSnapshotContents, {
    metadata: { name: "by-hand" },
    spec: {
      deletionPolicy: "Retain",
      driver: DRIVER,
      source: { snapshotHandle: handle },
      volumeSnapshotRef: { name: "s2", namespace: "default" },
    },
  });

  await world.client.create(volumeSnapshots, {
    metadata: { name: "s2", namespace: "default" },
    spec: { source: { volumeSnapshotContentName: "by-hand" } },
  });
  await world.settle();

  expect((await snapshot(world, "s2"))?.status).toMatchObject({
    boundVolumeSnapshotContentName: "by-hand",
    readyToUse: true,
    restoreSize: "64Mi",
  });
});

test("without a claim, a class or a driver that can, a snapshot says what is missing", async () => {
  const world = await given();
  world.start();
  await cut(world, "s1");
  await world.settle();
  expect(world.events.at(-1)).toContain("SnapshotContentCreationFailed");
  expect(world.events.at(-1)).toContain("the PVC data is not yet bound to a PV");

  await world.createClaim("data");
  await world.settle();
  expect(world.events.at(-1)).toContain("SetDefaultSnapshotClassFailed");

  world.misbehave([{ rpc: "CreateSnapshot", effect: { kind: "error", code: "INTERNAL" }, probability: 1 }]);
  await world.client.create(volumeSnapshotClasses, {
    metadata: { name: "snap", annotations: { [DEFAULT_SNAPSHOT_CLASS]: "true" } },
    driver: DRIVER,
    deletionPolicy: "Delete",
  });
  await world.settle();
  expect((await snapshot(world, "s1"))?.status?.error?.message).toContain("INTERNAL");

  world.misbehave([]);
  await world.advance(30_000);
  expect((await snapshot(world, "s1"))?.status?.readyToUse).toBe(true);
  expect((await snapshot(world, "s1"))?.status?.error).toBeUndefined();
});

test("killed at every request of a cut and of its deletion, nothing is left over", async () => {
  for (const [operation, requests] of [
    ["cut", 10],
    ["delete", 5],
  ] as const) {
    for (let at = 1; at <= requests; at++) {
      const world = await given();
      await bound(world);
      if (operation === "delete") {
        await cut(world, "s1");
        await world.settle();
      }
      world.take();
      world.killAt(at);
      if (operation === "cut") await cut(world, "s1");
      else await remove(world, "s1");
      await world.settle();
      world.kill();
      // The harder half: it goes before anybody looked at what the driver did.
      if (operation === "cut") await remove(world, "s1");

      world.start();
      await world.advance(10_000);

      expect(await snapshot(world, "s1"), `${operation} killed at ${at}`).toBeUndefined();
      expect(contentsOf(world), `${operation} killed at ${at}`).toEqual([]);
      expect(world.driver.counts().snapshots, `${operation} killed at ${at}`).toBe(0);
      expect((await world.claim("data"))?.metadata.finalizers).toEqual(["kubernetes.io/pvc-protection"]);
    }
  }
});

test("a content that is created once more after its snapshot has come and gone is removed, and nothing is cut", async () => {
  const world = await given();
  await bound(world);
  await cut(world, "s1");
  await world.settle();
  const [{ metadata, spec } = {}] = contentsOf(world);
  const { name = "", finalizers = [] } = metadata ?? {};
  await remove(world, "s1");
  await world.settle();
  world.take();

  // The creation whose answer was lost, carried out late.
  await world.client.create(volumeSnapshotContents, {
    metadata: { name, finalizers },
    spec,
  } as VolumeSnapshotContent);
  await world.settle();

  expect(contentsOf(world)).toEqual([]);
  expect(world.take().filter((line) => line.includes("CreateSnapshot"))).toEqual([]);
});

test("nothing is cut on the word of a watch that is behind: the mark of the cut may have been taken back since", async () => {
  const world = await given();
  await bound(world);
  world.misbehave([
    { rpc: "CreateSnapshot", effect: { kind: "error", code: "UNAVAILABLE" }, probability: 1 },
  ]);
  await cut(world, "s1");
  await world.settle();
  const [{ metadata } = {}] = contentsOf(world);
  expect(metadata?.annotations).toHaveProperty([BEING_CREATED]);

  // The next answer is a clear no, so the mark goes; of that neither an answer nor the watch tells.
  world.held.add("volumesnapshotcontents");
  world.misbehave([{ rpc: "CreateSnapshot", effect: { kind: "error", code: "NOT_FOUND" }, probability: 1 }]);
  world.transport.spoil(`PATCH volumesnapshotcontents ${metadata?.name}`, { kind: "answer-lost" }, 1);
  await world.advance(1_000);
  expect(contentsOf(world)[0]?.metadata.annotations).toBeUndefined();
  world.misbehave([]);
  world.take();
  await world.advance(10_000);

  expect(world.take().filter((line) => line === "CreateSnapshot")).toHaveLength(1);
  expect(contentsOf(world)[0]?.status?.snapshotHandle).toBeTruthy();

  await remove(world, "s1");
  world.held.clear();
  await world.advance(10_000);
  expect(contentsOf(world)).toEqual([]);
  expect(world.driver.counts().snapshots).toBe(0);
});
