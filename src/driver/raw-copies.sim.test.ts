import { describe, expect, test } from "vitest";
import { chance, pick, type Random } from "../base/random.ts";
import { forSeeds, inProportion } from "../sim/seeds.ts";
import type { OpenDevice } from "./fake-host.testing.ts";
import {
  blockCapability,
  codeOf,
  createdVolume,
  given,
  mountCapability,
  openPeer,
  STATE,
  type World,
} from "./stage.testing.ts";

/**
 * A writer counts up in block "a" and then in block "b", which lies far behind it, before, during and after copies are
 * made. No moment has b ahead of a, so no copy may: not of a raw device, not of a filesystem, mounted or not, not of one
 * that is mounted where the driver does not see it, on filesystems that share blocks and on those that do not.
 */

const NAMES = ["one", "two", "three"] as const;
type Name = (typeof NAMES)[number];

interface Volume {
  readonly id: string;
  readonly capability: ReturnType<typeof blockCapability>;
  writer?: OpenDevice | undefined;
  count: number;
}

class Writers {
  readonly volumes = new Map<Name, Volume>();
  readonly #random: Random;
  readonly world: World;
  copies = 0;
  refused = 0;

  constructor(random: Random, world: World) {
    this.#random = random;
    this.world = world;
    world.host.filesystem.whileCopying = () => this.write();
  }

  async create(): Promise<void> {
    for (const name of NAMES) {
      this.world.host.makePath(`/kubelet/stage-${name}`);
      const capability = chance(this.#random, 0.6) ? blockCapability() : mountCapability();
      const id = await createdVolume(this.world, name, { capability });
      const image = this.world.host.image(`${STATE}/volumes/${id}/image.raw`);
      for (const block of ["a", "b", "middle"]) image.data.set(block, "0");
      this.volumes.set(name, { id, capability, count: 0 });
      await this.world.controller.controllerPublishVolume({
        volumeId: id,
        nodeId: "node-1",
        volumeCapability: capability,
      });
    }
  }

  /** Some of them write, the ones that can: a frozen filesystem keeps its writer waiting, a read-only device refuses. */
  write(): void {
    for (const [name, volume] of this.volumes) {
      if (chance(this.#random, 0.3)) continue;
      const text = String(volume.count + 1);
      try {
        for (const block of ["a", "b"]) this.#writeTo(name, volume, block, text);
        volume.count++;
      } catch {
        // Nothing is there to write to now.
      }
    }
  }

  #writeTo(name: Name, { writer }: Volume, block: string, text: string): void {
    if (writer !== undefined) writer.write(block, text);
    else this.world.host.writeData(`/kubelet/pods/${name}`, block, text);
  }

  async change(): Promise<void> {
    const name = pick(this.#random, NAMES);
    const volume = this.volumes.get(name)!;
    const { node } = this.world;
    const common = { volumeId: volume.id, stagingTargetPath: `/kubelet/stage-${name}` };
    const request = { ...common, volumeCapability: volume.capability, targetPath: `/kubelet/pods/${name}` };
    const changes: readonly (() => Promise<unknown>)[] = [
      () => node.nodeStageVolume(request),
      () => node.nodePublishVolume({ ...request, readonly: chance(this.#random, 0.3) }),
      () => node.nodeUnpublishVolume(request),
      () => node.nodeUnstageVolume(common),
      // Somebody goes on writing to the device itself, also when the volume is unpublished.
      async () => {
        const image = await this.world.host.files.stat(`${STATE}/volumes/${volume.id}/image.raw`);
        const devices = await this.world.host.loops.list();
        const device = devices.find(({ backing }) => backing === image?.identity);
        if (volume.capability.accessType?.case === "block" && volume.writer === undefined)
          volume.writer = this.world.host.openDevice(device?.path ?? "");
      },
      async () => {
        volume.writer?.close();
        volume.writer = undefined;
      },
      // Its staging mount is where only another mount namespace has it.
      async () => this.world.host.mounts.unmount(common.stagingTargetPath),
    ];
    try {
      await pick(this.#random, changes)();
    } catch {
      // Refused: busy, not staged, or the like.
    }
  }

  async copy(turn: number): Promise<void> {
    const name = pick(this.#random, NAMES);
    const { id, capability } = this.volumes.get(name)!;
    const { controller, group } = this.world;
    const ids = [...this.volumes.values()].map((volume) => volume.id);
    const copies: readonly (() => Promise<readonly string[]>)[] = [
      async () => {
        const { snapshot } = await controller.createSnapshot({ name: `s${turn}`, sourceVolumeId: id });
        return [`${STATE}/snapshots/${snapshot?.snapshotId ?? ""}/image.raw`];
      },
      async () => {
        const { volume } = await controller.createVolume({
          name: `clone-${turn}`,
          volumeCapabilities: [capability],
          volumeContentSource: { type: { case: "volume", value: { volumeId: id } } },
        });
        return [`${STATE}/volumes/${volume?.volumeId ?? ""}/image.raw`];
      },
      async () => {
        const answer = await group.createVolumeGroupSnapshot({ name: `g${turn}`, sourceVolumeIds: ids });
        return (answer.groupSnapshot?.snapshots ?? []).map(
          ({ snapshotId }) => `${STATE}/snapshots/${snapshotId}/image.raw`,
        );
      },
    ];
    let images: readonly string[] = [];
    const code = await codeOf(pick(this.#random, copies)().then((made) => (images = made)));
    if (code !== "OK") this.refused++;
    for (const image of images) this.check(image);
  }

  check(path: string): void {
    const { data } = this.world.host.image(path);
    this.copies++;
    // A filesystem was empty when it was made.
    const [a, b] = ["a", "b"].map((block) => Number(data.get(block) ?? 0)) as [number, number];
    expect([a, a + 1], path).toContain(b + 1);
    expect(this.world.host.frozen()).toEqual([]);
  }
}

for (const reflink of [true, false]) {
  test(`whoever writes meanwhile, a copy on a filesystem ${reflink ? "with" : "without"} reflinks is of one moment, or refused`, async () => {
    let [copies, refused] = [0, 0];
    await forSeeds(15, async (random) => {
      const world = await given();
      world.host.filesystem.reflink = reflink;
      const writers = new Writers(random, world);
      await writers.create();
      for (let turn = 0; turn < 40; turn++) {
        writers.write();
        if (chance(random, 0.7)) await writers.change();
        else await writers.copy(turn);
      }
      copies += writers.copies;
      refused += writers.refused;
    });
    expect(copies).toBeGreaterThan(inProportion(60));
    expect(refused).toBeGreaterThan(inProportion(10));
  });
}

describe("a group of raw volumes that are written in order, one after the other", () => {
  async function givenTwo(reflink: boolean) {
    const world = await given();
    world.host.filesystem.reflink = reflink;
    const ids: string[] = [];
    for (const name of ["first", "second"]) {
      world.host.makePath(`/kubelet/stage-${name}`);
      const capability = blockCapability();
      const volumeId = await createdVolume(world, name, { capability });
      await world.controller.controllerPublishVolume({
        volumeId,
        nodeId: "node-1",
        volumeCapability: capability,
      });
      ids.push(volumeId);
    }
    const stage = (index: number) =>
      world.node.nodeStageVolume({
        volumeId: ids[index] ?? "",
        stagingTargetPath: `/kubelet/stage-${index === 0 ? "first" : "second"}`,
        volumeCapability: blockCapability(),
      });
    const cut = () => world.group.createVolumeGroupSnapshot({ name: "g", sourceVolumeIds: ids });
    return { world, stage, cut };
  }

  test("is refused while two of them can be written, also with reflinks, and leaves nothing", async () => {
    const { world, stage, cut } = await givenTwo(true);
    for (const index of [0, 1]) await stage(index);

    await expect(cut()).rejects.toThrow(/FAILED_PRECONDITION.*as of one moment/s);

    expect(world.host.tree(`${STATE}/snapshots`)).toEqual([]);
    expect(world.host.tree(`${STATE}/groups`)).toEqual([]);
  });

  for (const [reflink, code] of [
    [true, "OK"],
    [false, "FAILED_PRECONDITION"],
  ] as const) {
    test(`with one that can be written, and reflink ${reflink}: ${code}`, async () => {
      const { stage, cut } = await givenTwo(reflink);
      await stage(1);

      expect(await codeOf(cut())).toBe(code);
    });
  }
});

test("a controller in another mount namespace than the node refuses to copy what it cannot freeze", async () => {
  const world = await given();
  const capability = mountCapability();
  const volumeId = await createdVolume(world, "a");
  await world.controller.controllerPublishVolume({
    volumeId,
    nodeId: "node-1",
    volumeCapability: capability,
  });
  await world.node.nodeStageVolume({
    volumeId,
    stagingTargetPath: "/kubelet/stage",
    volumeCapability: capability,
  });
  const blind = { ...world.host, mounts: { ...world.host.mounts, list: async () => [] } };
  const { driver, controller } = openPeer(blind, world.clock, { serves: "controller" }, "blind");
  await driver.recover();

  const cut = controller.createSnapshot({ name: "s", sourceVolumeId: volumeId });

  await expect(cut).rejects.toThrow(/FAILED_PRECONDITION.*can be written at this moment/s);
});
