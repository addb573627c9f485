import { expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import type { FaultEffect } from "../driver/faults.ts";
import { persistentVolumeClaims, type PersistentVolumeClaim } from "../kube/api/persistent-volume-claim.ts";
import { persistentVolumes, type PersistentVolume } from "../kube/api/persistent-volume.ts";
import { volumeAttachments } from "../kube/api/volume-attachment.ts";
import { isKubeError } from "../kube/errors.ts";
import { NO_FAULTS, type NetworkFaults } from "../sim/faulty-transport.ts";
import { forSeeds } from "../sim/seeds.ts";
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from "./kinds.ts";
import { SELECTED_NODE } from "./names.ts";
import { DEFAULT_SNAPSHOT_CLASS } from "./snapshotter/names.ts";
import { DRIVER, given, type StorageWorld } from "./stage.testing.ts";

const BAD_WEATHER: NetworkFaults = {
  ...NO_FAULTS,
  unreachable: 0.04,
  lostAnswer: 0.05,
  lostRequest: 0.01,
  tooMany: 0.02,
  serverError: 0.05,
  cut: 0.02,
  repeated: 0.05,
  swapped: 0.05,
  expiredInStream: 0.01,
  latencyMsMax: 40,
};

const EFFECTS: readonly FaultEffect[] = [
  { kind: "lost" },
  { kind: "error", code: "INTERNAL" },
  { kind: "error", code: "UNAVAILABLE" },
  { kind: "error", code: "RESOURCE_EXHAUSTED" },
  { kind: "error", code: "INVALID_ARGUMENT" },
  { kind: "slow", ms: 2_000 },
];
const CALLS = ["CreateVolume", "DeleteVolume", "CreateSnapshot", "DeleteSnapshot", "ControllerExpandVolume"];
const CLAIMS = ["a", "b", "c", "d", "e"];
const SNAPSHOTS = ["s1", "s2"];

const isBound = ({ status, metadata }: PersistentVolumeClaim) =>
  status?.phase === "Bound" && !metadata.deletionTimestamp;

/**
 * Watches the server and the driver from outside:
 * - no volume is named by two bound claims, and what a bound claim names, names it;
 * - no volume is deleted while an attachment names it or a claim is bound to it.
 */
function watchLaws(world: StorageWorld): { violations: string[]; check: () => void } {
  const violations: string[] = [];

  function check(): void {
    const volumes = new Map(world.list(persistentVolumes).map((one) => [one.metadata.name, one]));
    const owners = new Map<string, string>();
    for (const claim of world.list(persistentVolumeClaims).filter(isBound)) {
      const [name, owner] = [claim.spec?.volumeName ?? "", claim.metadata.name ?? ""];
      if (owners.has(name)) violations.push(`${name} is bound to ${owners.get(name)} and ${owner}`);
      owners.set(name, owner);
      if (volumes.get(name)?.spec?.claimRef?.uid !== claim.metadata.uid)
        violations.push(`${owner} names ${name}, which does not name it`);
    }
  }

  world.onCall = (call, { volumeId }) => {
    if (call !== "DeleteVolume") return;
    const volume = world.list(persistentVolumes).find(({ spec }) => spec?.csi?.volumeHandle === volumeId);
    const name = volume?.metadata.name;
    const attached = world
      .list(volumeAttachments)
      .some(({ spec }) => name !== undefined && spec.source.persistentVolumeName === name);
    if (attached) violations.push(`${name} deleted while attached`);
    const owner = world.list(persistentVolumeClaims).find((claim) => claim.spec?.volumeName === name && name);
    if (owner && isBound(owner)) violations.push(`${name} deleted while bound to ${owner.metadata.name}`);
  };
  return { violations, check };
}

async function populate(world: StorageWorld): Promise<void> {
  await world.createClass("later", { volumeBindingMode: "WaitForFirstConsumer" });
  await world.createClass("keep", { reclaimPolicy: "Retain" });
  for (const name of ["v1", "v2"]) await world.createVolume(name, { capacity: { storage: "64Mi" } });
  await world.client.create(volumeSnapshotClasses, {
    metadata: { name: "snap", annotations: { [DEFAULT_SNAPSHOT_CLASS]: "true" } },
    driver: DRIVER,
    deletionPolicy: "Delete",
  });
}

/** What people do. What the server refuses is their mistake. */
async function act(world: StorageWorld, random: Random): Promise<void> {
  try {
    await pick(random, [toggleClaim, toggleClaim, toggleClaim, toggleSnapshot, toggleAttachment, grow])(
      world,
      random,
    );
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists", "NotFound", "Conflict", "Forbidden", "Invalid")) throw error;
  }
}

async function toggleClaim(world: StorageWorld, random: Random): Promise<void> {
  const name = pick(random, CLAIMS);
  if ((await world.claim(name)) !== undefined) return world.deleteClaim(name);
  const storageClassName = pick(random, ["fast", "fast", "later", "keep", "slow"]);
  const snapshot = {
    apiGroup: "snapshot.storage.k8s.io",
    kind: "VolumeSnapshot",
    name: pick(random, SNAPSHOTS),
  };
  const clone = { kind: "PersistentVolumeClaim", name: pick(random, CLAIMS) };
  const dataSource = chance(random, 0.3) ? { dataSource: pick(random, [snapshot, clone]) } : {};
  await world.createClaim(name, { storageClassName, ...dataSource });
}

async function toggleSnapshot(world: StorageWorld, random: Random): Promise<void> {
  const ref = { name: pick(random, SNAPSHOTS), namespace: "default" };
  if (world.list(volumeSnapshots).some(({ metadata }) => metadata.name === ref.name))
    return world.client.delete(volumeSnapshots, ref);
  const source = { persistentVolumeClaimName: pick(random, CLAIMS) };
  await world.client.create(volumeSnapshots, { metadata: ref, spec: { source } });
}

/** As an attach/detach controller does: only what is bound is attached. */
async function toggleAttachment(world: StorageWorld, random: Random): Promise<void> {
  const claim = await world.claim(pick(random, CLAIMS));
  if (!claim || !isBound(claim)) return;
  const volume = claim.spec?.volumeName ?? "";
  const name = `va-${volume}`;
  if (world.list(volumeAttachments).some(({ metadata }) => metadata.name === name))
    return world.client.delete(volumeAttachments, { name });
  await world.client.create(volumeAttachments, {
    metadata: { name },
    spec: { attacher: DRIVER, nodeName: "n1", source: { persistentVolumeName: volume } },
  });
}

async function grow(world: StorageWorld, random: Random): Promise<void> {
  const value = { spec: { resources: { requests: { storage: pick(random, ["96Mi", "128Mi"]) } } } };
  const ref = { name: pick(random, CLAIMS), namespace: "default" };
  await world.client.patch(persistentVolumeClaims, ref, { type: "merge", value });
}

/** Chooses a node for whatever waits for one. */
async function schedule(world: StorageWorld): Promise<void> {
  for (const { metadata, spec } of world.list(persistentVolumeClaims)) {
    if (spec?.storageClassName !== "later" || metadata.annotations?.[SELECTED_NODE]) continue;
    const value = { metadata: { annotations: { [SELECTED_NODE]: "n2" } } };
    const ref = { name: metadata.name ?? "", namespace: "default" };
    await world.client.patch(persistentVolumeClaims, ref, { type: "merge", value });
  }
}

const ours = ({ spec }: PersistentVolume) => spec?.csi?.driver === DRIVER;

test("whatever breaks and whenever it is killed: no volume twice, none deleted in use, none left over", async () => {
  await forSeeds(6, async (random, seed) => {
    let weather = NO_FAULTS;
    const world = await given({ seed, network: () => weather });
    await populate(world);
    const { violations, check } = watchLaws(world);
    world.start();
    weather = BAD_WEATHER;
    for (let step = 0; step < 60; step++) {
      if (chance(random, 0.5)) await act(world, random);
      if (chance(random, 0.3)) await schedule(world);
      if (chance(random, 0.1)) {
        world.kill();
        world.start();
      }
      if (chance(random, 0.2))
        world.misbehave(CALLS.map((rpc) => ({ rpc, effect: pick(random, EFFECTS), probability: 0.3 })));
      for (let slice = 0; slice < 5; slice++) {
        await world.advance(random.int(400));
        check();
      }
    }

    weather = NO_FAULTS;
    world.misbehave([]);
    for (const { metadata } of world.list(volumeAttachments))
      await world.client.delete(volumeAttachments, { name: metadata.name ?? "" });
    // Twice the longest back-off, and some.
    for (let round = 0; round < 12; round++) {
      await schedule(world);
      await world.advance(60_000);
      check();
    }

    expect(violations).toEqual([]);
    await expectAtRest(world);
  });
});

/** Nothing goes, nothing is held for a call, and the driver has exactly what the cluster knows. */
async function expectAtRest(world: StorageWorld): Promise<void> {
  const [claims, volumes, contents] = [
    world.list(persistentVolumeClaims),
    world.list(persistentVolumes),
    world.list(volumeSnapshotContents),
  ];
  const all = [...claims, ...volumes, ...contents, ...world.list(volumeSnapshots)];
  expect(
    all.filter(({ metadata }) => metadata.deletionTimestamp).map(({ metadata }) => metadata.name),
  ).toEqual([]);
  expect(world.driver.counts().volumes).toBe(volumes.filter(ours).length);
  expect(world.driver.counts().snapshots).toBe(
    contents.filter(({ status }) => status?.snapshotHandle).length,
  );
  for (const claim of claims.filter((one) => !isBound(one))) {
    expect(claim.metadata.finalizers, claim.metadata.name).toEqual(["kubernetes.io/pvc-protection"]);
    expect(world.events.join("\n")).toContain(`PersistentVolumeClaim/${claim.metadata.name} `);
  }
  for (const volume of volumes) expect(volume.status?.phase).toMatch(/^(Bound|Available|Released)$/);
}

const FLOWS = {
  "a static bind": { spec: { storageClassName: "slow" }, leaves: 0, requests: 8 },
  "a volume made": { spec: {}, leaves: 1, requests: 10 },
} as const;

for (const [flow, { spec, leaves, requests }] of Object.entries(FLOWS)) {
  test(`${flow}: killed at every request, carried out or not, it is finished by the next start`, async () => {
    for (let at = 1; at <= requests; at++) {
      for (const lost of [false, true]) {
        const world = await given();
        await populate(world);
        const { violations, check } = watchLaws(world);
        world.start();
        await world.settle();
        world.killAt(at, { lost });
        await world.createClaim("a", spec);
        await world.createClaim("b", spec);
        await world.settle();
        check();
        world.kill();
        world.start();
        await world.advance(5_000);
        check();

        const label = `killed at ${at}, carried out: ${!lost}`;
        expect(violations, label).toEqual([]);
        const phases = [await world.claim("a"), await world.claim("b")].map((claim) => claim?.status?.phase);
        expect(phases, label).toEqual(["Bound", "Bound"]);
        expect(world.driver.counts().volumes, label).toBe(2 * leaves);
      }
    }
  });
}

test("a claim that goes: killed at every request, its volume goes with it all the same", async () => {
  for (let at = 1; at <= 5; at++) {
    for (const lost of [false, true]) {
      const world = await given();
      await populate(world);
      world.start();
      await world.createClaim("a");
      await world.settle();
      world.killAt(at, { lost });
      await world.deleteClaim("a");
      await world.settle();
      world.kill();
      world.start();
      await world.advance(10_000);

      const label = `killed at ${at}, carried out: ${!lost}`;
      expect(await world.claim("a"), label).toBeUndefined();
      expect(world.list(persistentVolumes).filter(ours), label).toEqual([]);
      expect(world.driver.counts().volumes, label).toBe(0);
    }
  }
});

test("a claim that goes in the middle of its making: killed at every request, nothing is left over", async () => {
  for (let at = 1; at <= 9; at++) {
    const world = await given();
    await populate(world);
    world.start();
    await world.settle();
    world.killAt(at);
    await world.createClaim("a");
    await world.settle();
    world.kill();
    await world.deleteClaim("a");
    world.start();
    await world.advance(10_000);

    expect(await world.claim("a"), `killed at ${at}`).toBeUndefined();
    expect(world.list(persistentVolumes).filter(ours), `killed at ${at}`).toEqual([]);
    expect(world.driver.counts().volumes, `killed at ${at}`).toBe(0);
  }
});
