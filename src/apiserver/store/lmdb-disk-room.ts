import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  futimesSync,
  mkdirSync,
  openSync,
  readSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { dataFile, lockFile } from "./lmdb-disk.ts";
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
  const pagesEnd = () => (readMeta(source).lastPage + 1) * pageBytes;
  const freeBytes = () => freeBytesAt(directory);
  const room: FileRoom = {
    reserveBytes: reserveBytesAt(directory, pageBytes),
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

/** What is kept on this disk; known before there is a file. */
export function reserveBytesAt(directory: string, pageBytes: number): number {
  const { blocks, bsize } = statfsSync(directory);
  const share = Math.floor((blocks * bsize * RESERVE_SHARE) / pageBytes) * pageBytes;
  return Math.min(Math.max(share, RESERVE_BYTES_MIN), RESERVE_BYTES_MAX);
}

export function freeBytesAt(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

/** Whether the engine will make a new file; the directory is there after this. */
export function isWithoutData(directory: string): boolean {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return !existsSync(dataFile(directory));
}

/** Of the engine's lock file: a header of 272 bytes and 64 for each of 125 further readers. */
export const LOCK_BYTES = 272 + 125 * 64;

/**
 * Gives the lock file its blocks. The engine makes it as one hole and writes to it through memory: where the disk has no
 * block for it then, the kernel ends the process (SIGBUS). Whether it has them now; what is in the file stays.
 */
export function allocateLock(directory: string): boolean {
  const file = openSync(lockFile(directory), constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    const { size, blocks } = fstatSync(file);
    if (size >= LOCK_BYTES && blocks * 512 >= LOCK_BYTES) return true;
    const content = Buffer.alloc(LOCK_BYTES);
    readSync(file, content, 0, Math.min(size, LOCK_BYTES), 0);
    return writeAll(file, content, 0, LOCK_BYTES) === LOCK_BYTES;
  } finally {
    closeSync(file);
  }
}

/** A file that was copied may have holes where there were zeros: no room. What cannot be filled is cut off. */
function fillHoles(file: number, pagesEnd: number): void {
  const { size, blocks } = fstatSync(file);
  if (size <= pagesEnd || blocks * 512 >= size) return;
  const filled = writeZeros(file, pagesEnd, size - pagesEnd);
  if (filled < size - pagesEnd) ftruncateSync(file, pagesEnd + filled);
}

const ZEROS = Buffer.alloc(GROWTH_BYTES);

function writeZeros(file: number, from: number, bytes: number): number {
  return writeAll(file, ZEROS, from, bytes);
}

/** The buffer over and over, as many bytes as the disk takes; returns how many that were. */
function writeAll(file: number, buffer: Buffer, from: number, bytes: number): number {
  let written = 0;
  try {
    while (written < bytes) {
      const start = written % buffer.length;
      const length = Math.min(buffer.length - start, bytes - written);
      written += writeSync(file, buffer, start, length, from + written);
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
