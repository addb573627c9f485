import { open, type FileHandle } from "node:fs/promises";
import { failing } from "./linux-failing.ts";
import type { Tools } from "./linux-exec.ts";

/**
 * Is an image all zero? Found by reading it. A thin image of 1 TiB is one hole, and reading a hole takes as long as
 * reading data (3 GB/s from memory: 5 minutes), so holes are skipped: `filefrag` has the kernel's list of what is
 * allocated. Its word is not enough to leave out the two ends, where filesystems, partition tables and arrays keep their
 * superblocks: those are read in any case. Where there is no list, or it does not add up, everything is read.
 */

const CHUNK_BYTES = 1 << 20;
const ZEROS = Buffer.alloc(CHUNK_BYTES);
const LIST_MS_MAX = 60_000;

interface Range {
  readonly fromByte: number;
  readonly endByte: number;
}

export async function firstNonZero(tools: Tools, path: string): Promise<bigint | undefined> {
  return failing(`read ${path}`, async () => {
    const ranges = await allocatedRanges(tools, path);
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      const ends = [
        { fromByte: 0, endByte: Math.min(CHUNK_BYTES, size) },
        { fromByte: Math.max(0, size - CHUNK_BYTES), endByte: size },
      ];
      for (const { fromByte, endByte } of [...ends, ...(ranges ?? [{ fromByte: 0, endByte: size }])]) {
        const found = await firstIn(file, { fromByte, endByte: Math.min(endByte, size) });
        if (found !== undefined) return found;
      }
      return undefined;
    } finally {
      await file.close();
    }
  });
}

async function firstIn(file: FileHandle, { fromByte, endByte }: Range): Promise<bigint | undefined> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = fromByte; at < endByte;) {
    const wanted = Math.min(CHUNK_BYTES, endByte - at);
    const { bytesRead } = await file.read(chunk, 0, wanted, at);
    // A file that ends before its size: it was cut while it was read.
    if (bytesRead === 0) throw new Error(`only ${at} of ${endByte} bytes could be read`);
    const found = chunk.subarray(0, bytesRead);
    if (found.compare(ZEROS, 0, bytesRead) !== 0) return BigInt(at + found.findIndex((byte) => byte !== 0));
    at += bytesRead;
  }
  return undefined;
}

/** Undefined where the filesystem below keeps no such list, or the list is not whole. */
async function allocatedRanges(tools: Tools, path: string): Promise<readonly Range[] | undefined> {
  if (tools.find("filefrag") === undefined) return undefined;
  // -s: what is only in memory yet gets its place first. Exit 1 with a message where the filesystem has no lists.
  const args = ["-s", "-v", "-b1", path];
  const { exitCode, stdout } = await tools.run("filefrag", args, { timeoutMs: LIST_MS_MAX, ok: [1] });
  return exitCode === 0 ? parseRanges(stdout) : undefined;
}

/** `   0:        0..    4095:   13979648..  13983743:   4096:             last,unwritten,eof` in bytes, and a count at the end. */
export function parseRanges(text: string): readonly Range[] | undefined {
  const lines = text.trimEnd().split("\n");
  const count = /: (\d+) extents? found$/.exec(lines.at(-1) ?? "");
  if (count === null) return undefined;
  const ranges = lines.flatMap((line) => {
    const match = /^\s*\d+:\s*(\d+)\.\.\s*(\d+):/.exec(line);
    return match === null ? [] : [{ fromByte: Number(match[1]), endByte: Number(match[2]) + 1 }];
  });
  // Neighbouring lines may count as one extent, never the other way round.
  return ranges.length >= Number(count[1]) ? ranges : undefined;
}
