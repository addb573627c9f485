import { describe, expect, test } from "vitest";
import { BlockMetadataType, SnapshotMetadata } from "../csi/gen/csi_pb.ts";
import { createMemoryChannel } from "../csi/memory-channel.ts";
import { createClient } from "../csi/methods.ts";
import { silentLogger } from "../base/log.ts";
import { LOCK_WAIT_MS } from "./locks.ts";
import { MIB, type DriverOptions } from "./options.ts";
import { blockCapability, codeOf, createdVolume, given, MINUTE, STATE, type World } from "./stage.testing.ts";

/** Lists of blocks for backups: what is there, and what has changed between two snapshots of a volume. */

const SIZE = 3n * MIB;

async function givenSnapshots(options: Partial<DriverOptions> = {}) {
  const world = await given({ snapshotMetadata: true, ...options });
  const channel = createMemoryChannel({ clock: world.clock, log: silentLogger }, world.driver.methods);
  const metadata = createClient(SnapshotMetadata, channel);
  const volumeId = await createdVolume(world, "disk", { sizeBytes: SIZE, capability: blockCapability() });
  const write = (block: number, text: string) =>
    world.host.image(`${STATE}/volumes/${volumeId}/image.raw`).data.set(String(block), text);
  for (const block of [0, 1, 2, 300, 767]) write(block, "old");
  const base = await snapshotOf(world, "base", volumeId);
  write(1, "new");
  write(2, "new");
  write(500, "new");
  const target = await snapshotOf(world, "target", volumeId);
  return { world, metadata, base, target, volumeId };
}

async function snapshotOf({ controller }: World, name: string, sourceVolumeId: string): Promise<string> {
  return (await controller.createSnapshot({ name, sourceVolumeId })).snapshot?.snapshotId ?? "";
}

interface Message {
  readonly blockMetadataType: number;
  readonly volumeCapacityBytes: bigint;
  readonly blockMetadata: readonly { readonly byteOffset: bigint; readonly sizeBytes: bigint }[];
}

/** Ranges in blocks of 4096, a list a message. */
async function read(stream: AsyncIterable<Message>): Promise<(readonly [number, number])[][]> {
  const messages = [];
  for await (const { blockMetadata, volumeCapacityBytes } of stream) {
    expect(volumeCapacityBytes).toBe(SIZE);
    messages.push(
      blockMetadata.map(
        ({ byteOffset, sizeBytes }) => [Number(byteOffset) / 4_096, Number(sizeBytes) / 4_096] as const,
      ),
    );
  }
  return messages;
}

describe("allocated blocks", () => {
  test("are listed in order, as many a message as asked for, from the block that holds the offset", async () => {
    const { metadata, base } = await givenSnapshots();
    const ask = (startingOffset: bigint, maxResults = 0) =>
      read(metadata.getMetadataAllocated({ snapshotId: base, startingOffset, maxResults }, MINUTE));

    expect(await ask(0n)).toEqual([
      [
        [0, 1],
        [1, 1],
        [2, 1],
        [300, 1],
        [767, 1],
      ],
    ]);
    expect((await ask(0n, 2)).map((ranges) => ranges.length)).toEqual([2, 2, 1]);
    expect(await ask(4_096n * 2n + 5n)).toEqual([
      [
        [2, 1],
        [300, 1],
        [767, 1],
      ],
    ]);
  });

  test("neighbours are one range where lengths may vary", async () => {
    const { metadata, base } = await givenSnapshots({ snapshotMetadataBlockType: "VARIABLE_LENGTH" });

    expect(await read(metadata.getMetadataAllocated({ snapshotId: base }, MINUTE))).toEqual([
      [
        [0, 3],
        [300, 1],
        [767, 1],
      ],
    ]);
  });

  test("the type is the same in all messages", async () => {
    const { metadata, base } = await givenSnapshots();

    for await (const { blockMetadataType } of metadata.getMetadataAllocated(
      { snapshotId: base, maxResults: 1 },
      MINUTE,
    ))
      expect(blockMetadataType).toBe(BlockMetadataType.FIXED_LENGTH);
  });
});

test("changed blocks are those that differ, whichever way round", async () => {
  const { metadata, base, target } = await givenSnapshots();
  const changed = [
    [
      [1, 1],
      [2, 1],
      [500, 1],
    ],
  ];

  expect(
    await read(metadata.getMetadataDelta({ baseSnapshotId: base, targetSnapshotId: target }, MINUTE)),
  ).toEqual(changed);
  expect(
    await read(metadata.getMetadataDelta({ baseSnapshotId: target, targetSnapshotId: base }, MINUTE)),
  ).toEqual(changed);
  expect(
    await read(metadata.getMetadataDelta({ baseSnapshotId: base, targetSnapshotId: base }, MINUTE)),
  ).toEqual([]);
});

test("what makes no sense is refused with the code of the protocol", async () => {
  const { world, metadata, base } = await givenSnapshots();
  const files = await snapshotOf(world, "files", await createdVolume(world, "files"));
  const other = await snapshotOf(
    world,
    "other",
    await createdVolume(world, "other", { capability: blockCapability() }),
  );
  const allocated = (request: object) => codeOf(read(metadata.getMetadataAllocated(request, MINUTE)));

  expect(await allocated({})).toBe("INVALID_ARGUMENT");
  expect(await allocated({ snapshotId: base, maxResults: -1 })).toBe("INVALID_ARGUMENT");
  expect(await allocated({ snapshotId: files })).toBe("INVALID_ARGUMENT");
  expect(await allocated({ snapshotId: "../../etc" })).toBe("NOT_FOUND");
  expect(await allocated({ snapshotId: base, startingOffset: -1n })).toBe("OUT_OF_RANGE");
  expect(await allocated({ snapshotId: base, startingOffset: SIZE })).toBe("OUT_OF_RANGE");
  expect(
    await codeOf(read(metadata.getMetadataDelta({ baseSnapshotId: base, targetSnapshotId: other }, MINUTE))),
  ).toBe("INVALID_ARGUMENT");
});

test("a snapshot is not deleted while its list is read, and is afterwards", async () => {
  const { world, metadata, base } = await givenSnapshots();
  const list = metadata.getMetadataAllocated({ snapshotId: base, maxResults: 1 }, MINUTE);
  const reading = list[Symbol.asyncIterator]();
  await reading.next();

  const removal = codeOf(world.controller.deleteSnapshot({ snapshotId: base }));
  await world.scheduler.runFor(LOCK_WAIT_MS);

  expect(await removal).toBe("ABORTED");
  await reading.return?.();
  await world.scheduler.runFor(1);
  expect(await codeOf(world.controller.deleteSnapshot({ snapshotId: base }))).toBe("OK");
});

test("nobody is offered it unless it was asked for", async () => {
  const world = await given();

  expect(world.driver.methods.some(({ path }) => path.includes("SnapshotMetadata"))).toBe(false);
});
