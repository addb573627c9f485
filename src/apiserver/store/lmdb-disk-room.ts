import {
  closeSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  openSync,
  readSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { dataFile } from "./lmdb-disk.ts";
import { freePagesOf, readMeta } from "./lmdb-file.ts";
import type { PageSource } from "./lmdb-source.ts";

/**
 * Room for commits, inside the data file: blocks behind its last page that are really allocated, as zeros. The engine
 * takes new pages from there, so that a commit which fits cannot find the disk full, whoever else writes to it.
 *
 * Why in the file and not in one beside it that is removed when it is needed: blocks that are given back to a full disk go
 * to whoever writes next, and on a full disk somebody always does. The engine does not mind a longer file. On a file
 * system that never writes in place (btrfs) this is no promise; there the margin is what the kernel keeps.
 */
export interface FileRoom {
  /** What is kept for deletions and compaction. */
  readonly reserveBytes: number;
  /** The number of the last commit. */
  transaction(): number;
  /** Allocated behind the last page. */
  tailBytes(): number;
  /** In the file, and of use to the next commit. */
  reusableBytes(): number;
  /** Of the disk, for those who are not root. */
  freeBytes(): number;
  /** Whether so much is allocated behind the last page; takes it from the disk where it is not. Never during a commit. */
  ensureTail(bytes: number): boolean;
  /** Throws what the kernel says where the file cannot be written to; the only thing it changes is a time. */
  probe(): void;
  close(): void;
}

/** Of a small disk a twentieth; the rest is for objects. The largest object, 1.5 MB, can be replaced within half of it. */
const RESERVE_SHARE = 1 / 20;
const RESERVE_BYTES_MIN = 512 * 1024;
const RESERVE_BYTES_MAX = 4 * 2 ** 20;
/** The file grows by this at least: 64 pages cost 30 us. */
const GROWTH_BYTES = 256 * 1024;

export function openFileRoom(directory: string, pageBytes: number): FileRoom {
  const path = dataFile(directory);
  const file = openSync(path, "r+");
  const source = liveSource(file, path);
  const { blocks, bsize } = statfsSync(directory);
  const share = Math.floor((blocks * bsize * RESERVE_SHARE) / pageBytes) * pageBytes;
  const pagesEnd = () => (readMeta(source).lastPage + 1) * pageBytes;
  const freeBytes = () => {
    const { bavail, bsize: unit } = statfsSync(directory);
    return bavail * unit;
  };
  const room: FileRoom = {
    reserveBytes: Math.min(Math.max(share, RESERVE_BYTES_MIN), RESERVE_BYTES_MAX),
    transaction: () => readMeta(source).transaction,
    tailBytes: () => Math.max(0, fstatSync(file).size - pagesEnd()),
    reusableBytes: () => freePagesOf(source) * pageBytes,
    freeBytes,
    ensureTail(bytes) {
      const missing = bytes - room.tailBytes();
      if (missing <= 0) return true;
      const free = freeBytes();
      if (free < missing) return false;
      const from = Math.max(fstatSync(file).size, pagesEnd());
      writeZeros(file, from, Math.min(Math.max(missing, GROWTH_BYTES), free));
      return room.tailBytes() >= bytes;
    },
    probe() {
      const seconds = fstatSync(file).mtimeMs / 1_000;
      futimesSync(file, seconds, seconds);
    },
    close: () => closeSync(file),
  };
  try {
    fillHoles(file, pagesEnd());
  } catch (error) {
    closeSync(file);
    throw error;
  }
  return room;
}

/** A file that was copied may have holes where there were zeros: no room. What cannot be filled is cut off. */
function fillHoles(file: number, pagesEnd: number): void {
  const { size, blocks } = fstatSync(file);
  if (size <= pagesEnd || blocks * 512 >= size) return;
  const filled = writeZeros(file, pagesEnd, size - pagesEnd);
  if (filled < size - pagesEnd) ftruncateSync(file, pagesEnd + filled);
}

const ZEROS = Buffer.alloc(GROWTH_BYTES);

/** As many as the disk takes; returns how many that were. */
function writeZeros(file: number, from: number, bytes: number): number {
  let written = 0;
  try {
    while (written < bytes) {
      written += writeSync(file, ZEROS, 0, Math.min(ZEROS.length, bytes - written), from + written);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOSPC" && code !== "EDQUOT") throw error;
  }
  return written;
}

/** The file as it is at this moment, between two commits. */
function liveSource(file: number, path: string): PageSource {
  return {
    path,
    hasFailedCommit: true,
    get sizeBytes() {
      return fstatSync(file).size;
    },
    read(offset, bytes) {
      const buffer = Buffer.alloc(bytes);
      readSync(file, buffer, 0, bytes, offset);
      return buffer;
    },
  };
}
