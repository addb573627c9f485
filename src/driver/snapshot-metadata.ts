import { BlockMetadataType, type SnapshotMetadata } from "../csi/gen/csi_pb.ts";
import { CsiError } from "../csi/errors.ts";
import type { CallContext, Handlers } from "../csi/methods.ts";
import { changedBlocks, merged, type Range } from "./blocks.ts";
import type { Context } from "./context.ts";
import { invalid, notFound, outOfRange, quoted } from "./errors.ts";
import type { LockKey } from "./locks.ts";
import { BLOCK_BYTES } from "./options.ts";
import type { SnapshotRecord } from "./records.ts";
import { checkPresent } from "./validate.ts";

/**
 * Which blocks a backup has to read (`--enable-snapshot-metadata`). Snapshots are whole images, so changes are found by
 * comparing bytes: exact, at the cost of reading both. The snapshots cannot be deleted while a list of them is read.
 */

/** Ranges a message where the caller names no number; 256 of them take 4 KiB. */
const RESULTS_DEFAULT = 256;
/** A message stays below the 4 MiB that Go receivers take. */
const RESULTS_MAX = 65_536;

interface Question {
  readonly targetId: string;
  readonly baseId?: string;
  readonly startingOffset: bigint;
  readonly maxResults: number;
}

export function createSnapshotMetadata(context: Context): Handlers<typeof SnapshotMetadata> {
  return {
    getMetadataAllocated: ({ snapshotId, startingOffset, maxResults }, call) => {
      checkPresent(snapshotId, "snapshot_id");
      return answer(context, { targetId: snapshotId, startingOffset, maxResults }, call);
    },
    getMetadataDelta: ({ baseSnapshotId, targetSnapshotId, startingOffset, maxResults }, call) => {
      checkPresent(baseSnapshotId, "base_snapshot_id");
      checkPresent(targetSnapshotId, "target_snapshot_id");
      const question = { targetId: targetSnapshotId, baseId: baseSnapshotId, startingOffset, maxResults };
      return answer(context, question, call);
    },
  };
}

async function* answer(context: Context, question: Question, { signal }: CallContext) {
  const { targetId, baseId, startingOffset, maxResults } = question;
  if (maxResults < 0) throw invalid("max_results is negative");
  const ids = new Set([targetId, ...(baseId === undefined ? [] : [baseId])]);
  const release = await holdOpen(
    context,
    [...ids].map((id) => ({ key: `snapshot/${id}`, shared: true })),
  );
  // A reader that is gone may never ask for the next message, which is where a stream would notice.
  signal.addEventListener("abort", () => void release(), { once: true });
  try {
    const target = find(context, targetId);
    const base = baseId === undefined ? undefined : find(context, baseId);
    if (base !== undefined && base.sourceVolumeId !== target.sourceVolumeId)
      throw invalid("the two snapshots are not of one volume");
    if (startingOffset < 0n || startingOffset >= target.sizeBytes)
      throw outOfRange(`starting_offset is outside of the ${target.sizeBytes} bytes of the snapshot`);
    const variable = context.settings.snapshotMetadataBlockType === "VARIABLE_LENGTH";
    const common = {
      blockMetadataType: variable ? BlockMetadataType.VARIABLE_LENGTH : BlockMetadataType.FIXED_LENGTH,
      volumeCapacityBytes: target.sizeBytes,
    };
    const blocks = blocksOf(context, target, base, startingOffset);
    const size = Math.min(maxResults === 0 ? RESULTS_DEFAULT : maxResults, RESULTS_MAX);
    for await (const blockMetadata of batches(variable ? merged(blocks) : blocks, size)) {
      if (signal.aborted) throw new CsiError("CANCELLED", "nobody reads the list any more");
      yield { ...common, blockMetadata };
    }
  } finally {
    await release();
  }
}

/** A lock for as long as a stream is read: until the answer is called. */
async function holdOpen(context: Context, keys: readonly LockKey[]): Promise<() => Promise<void>> {
  let letGo = (): void => undefined;
  const over = new Promise<void>((resolve) => (letGo = resolve));
  return new Promise((resolve, reject) => {
    const held = context.locks.hold(keys, async () => {
      resolve(async () => {
        letGo();
        await held;
      });
      await over;
    });
    held.catch(reject);
  });
}

function find({ snapshots }: Context, id: string): SnapshotRecord {
  const record = snapshots.get(id);
  if (record?.phase !== "ready") throw notFound(`snapshot ${quoted(id)} does not exist`);
  if (record.accessType !== "block")
    throw invalid(`snapshot ${id} is of a filesystem volume; read its files`);
  return record;
}

function blocksOf(
  { host, paths }: Context,
  target: SnapshotRecord,
  base: SnapshotRecord | undefined,
  startingOffset: bigint,
): AsyncIterable<Range> {
  const fromBytes = startingOffset - (startingOffset % BLOCK_BYTES);
  const read = ({ id }: SnapshotRecord) => host.images.read(paths.snapshotImage(id), fromBytes);
  return changedBlocks(read(target), base === undefined ? undefined : read(base), fromBytes);
}

async function* batches(ranges: AsyncIterable<Range>, size: number): AsyncGenerator<Range[], void> {
  let batch: Range[] = [];
  for await (const range of ranges) {
    batch.push(range);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
