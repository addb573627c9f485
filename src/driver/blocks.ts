import { BLOCK_BYTES } from "./options.ts";

/** Which blocks of an image hold something, or differ from another image's. */

export interface Range {
  readonly byteOffset: bigint;
  readonly sizeBytes: bigint;
}

const BLOCK = Number(BLOCK_BYTES);
const ZEROS = Buffer.alloc(BLOCK);

/**
 * Blocks of `target` that are not those of `base`, in order; where `base` has ended, or there is none, those that are
 * not zero. Both begin at `fromBytes`, which is a whole number of blocks, and give chunks of equal size but for the last.
 */
export async function* changedBlocks(
  target: AsyncIterable<Uint8Array>,
  base: AsyncIterable<Uint8Array> | undefined,
  fromBytes: bigint,
): AsyncGenerator<Range, void> {
  const others = base?.[Symbol.asyncIterator]();
  let at = fromBytes;
  try {
    for await (const chunk of target) {
      const next = await others?.next();
      const other: Uint8Array = next === undefined || next.done === true ? ZEROS.subarray(0, 0) : next.value;
      for (const offset of differing(chunk, other))
        yield { byteOffset: at + BigInt(offset), sizeBytes: BLOCK_BYTES };
      at += BigInt(chunk.length);
    }
  } finally {
    await others?.return?.();
  }
}

function* differing(chunk: Uint8Array, other: Uint8Array): Generator<number, void> {
  for (let offset = 0; offset < chunk.length; offset += BLOCK) {
    const mine = chunk.subarray(offset, offset + BLOCK);
    const theirs = other.subarray(offset, offset + BLOCK);
    const against = theirs.length === 0 ? ZEROS.subarray(0, mine.length) : theirs;
    if (Buffer.compare(mine, against) !== 0) yield offset;
  }
}

/** Neighbours become one range. */
export async function* merged(ranges: AsyncIterable<Range>): AsyncGenerator<Range, void> {
  let open: Range | undefined;
  for await (const range of ranges) {
    if (open !== undefined && open.byteOffset + open.sizeBytes === range.byteOffset) {
      open = { byteOffset: open.byteOffset, sizeBytes: open.sizeBytes + range.sizeBytes };
      continue;
    }
    if (open !== undefined) yield open;
    open = range;
  }
  if (open !== undefined) yield open;
}
