import { expect, test } from "vitest";
import { persistentVolumeClaims } from "../../kube/api/persistent-volume-claim.ts";
import { given, type StorageWorld } from "../stage.testing.ts";

async function ask(world: StorageWorld, name: string, storage: string): Promise<void> {
  const value = { spec: { resources: { requests: { storage } } } };
  await world.client.patch(persistentVolumeClaims, { name, namespace: "default" }, { type: "merge", value });
}

async function bound(world: StorageWorld, spec = {}): Promise<string> {
  world.start();
  await world.createClaim("data", spec);
  await world.settle();
  return (await world.claim("data"))?.spec?.volumeName ?? "";
}

const statusOf = async (world: StorageWorld) =>
  (await world.claim("data"))?.status as Record<string, unknown>;
const conditionsOf = async (world: StorageWorld) =>
  ((await world.claim("data"))?.status?.conditions ?? []).map(({ type }) => type);

test("a claim that asks for more: the volume grows, then the node is told to grow what is on it", async () => {
  const world = await given();
  const volume = await bound(world);

  await ask(world, "data", "128Mi");
  await world.settle();

  expect((await world.volume(volume))?.spec?.capacity).toEqual({ storage: "128Mi" });
  expect(await statusOf(world)).toMatchObject({
    capacity: { storage: "64Mi" },
    allocatedResources: { storage: "128Mi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  });
  expect(await conditionsOf(world)).toEqual(["FileSystemResizePending"]);
  expect(world.events.slice(-2)).toEqual([
    `PersistentVolumeClaim/data Resizing: External resizer is resizing volume ${volume}`,
    "PersistentVolumeClaim/data FileSystemResizeRequired: Require file system resize of volume on node",
  ]);
});

test("where the node has nothing to do the claim has its size at once", async () => {
  const world = await given({ driver: { nodeExpansion: false } });
  await bound(world, { volumeMode: "Block" });

  await ask(world, "data", "128Mi");
  await world.settle();

  expect(await statusOf(world)).toMatchObject({ capacity: { storage: "128Mi" } });
  expect((await statusOf(world))["allocatedResourceStatuses"]).toBeUndefined();
  expect(await conditionsOf(world)).toEqual([]);
  expect(world.events.at(-1)).toContain("VolumeResizeSuccessful");
});

test("a size the driver cannot give is infeasible; a smaller one asked for after that is given", async () => {
  const world = await given({ driver: { maxVolumeBytes: 200n * 1_048_576n } });
  const volume = await bound(world);

  await ask(world, "data", "1Gi");
  await world.settle();
  expect(await statusOf(world)).toMatchObject({
    allocatedResourceStatuses: { storage: "ControllerResizeInfeasible" },
  });
  expect(await conditionsOf(world)).toContain("ControllerResizeError");
  expect(world.events.at(-1)).toMatch(
    /VolumeResizeFailed: resize volume ".*" by resizer ".*" failed: OUT_OF_RANGE/,
  );
  const infeasible = world.take().length;
  await world.advance(600_000);
  // Ten minutes of back-off up to five: calls, and no write for each of them.
  expect(world.take().filter((line) => line.startsWith("PATCH")).length).toBeLessThan(infeasible);

  await ask(world, "data", "128Mi");
  await world.settle();

  expect((await world.volume(volume))?.spec?.capacity).toEqual({ storage: "128Mi" });
  expect(await statusOf(world)).toMatchObject({
    allocatedResources: { storage: "128Mi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  });
});

test("killed at every request of a growth, the next start finishes it", async () => {
  for (let at = 1; at <= 5; at++) {
    const world = await given();
    const volume = await bound(world);
    world.take();
    await ask(world, "data", "128Mi");
    world.killAt(at);
    await world.settle();

    world.start();
    await world.advance(5_000);

    expect((await world.volume(volume))?.spec?.capacity, `killed at ${at}`).toEqual({ storage: "128Mi" });
    expect(await statusOf(world), `killed at ${at}`).toMatchObject({
      allocatedResourceStatuses: { storage: "NodeResizePending" },
    });
  }
});
