import type { BigIntStats } from "node:fs";
import {
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rmdir,
  statfs,
  unlink,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { HostError, type FileStat, type HostFiles, type HostImages, type Usage } from "./host.ts";
import { firstNonZero } from "./linux-blank.ts";
import { codeOf, failing, orMissing } from "./linux-failing.ts";
import type { Tools } from "./linux-exec.ts";
import { createLinuxLock } from "./linux-lock.ts";

/** Files and images on a real disk. */

/** A 1 TiB image with 100 GiB written, at 200 MB/s. */
const COPY_MS_MAX = 600_000;

export function createLinuxFiles(tools: Tools): HostFiles {
  return {
    lock: createLinuxLock(tools),
    writeDurable: (path, text) =>
      failing(`write ${path}`, async () => {
        const file = await open(path, "w", 0o600);
        try {
          await file.writeFile(text);
          await file.sync();
        } finally {
          await file.close();
        }
      }),
    overwrite: (path, text) =>
      failing(`write over ${path}`, async () => {
        const file = await open(path, "r+");
        try {
          const bytes = Buffer.from(text);
          // A disk that fills up in the middle takes a part, and says how much: the rest of it says why.
          for (let done = 0; done < bytes.length;)
            done += (await file.write(bytes, done, bytes.length - done, done)).bytesWritten;
          await file.truncate(bytes.length);
          await file.sync();
        } finally {
          await file.close();
        }
      }),
    rename: (from, to) =>
      failing(`rename ${from}`, async () => {
        await rename(from, to);
        await syncDirectory(dirname(to));
        await syncDirectory(dirname(from));
      }),
    read: (path) => orMissing(`read ${path}`, () => readFile(path, "utf8")),
    list: async (directory) =>
      [...((await orMissing(`list ${directory}`, () => readdir(directory))) ?? [])].sort(),
    makeDirectory: (path, mode) => failing(`make directory ${path}`, () => makeDirectory(path, mode)),
    makeFile: (path) =>
      failing(`make ${path}`, async () => {
        const file = await open(path, "a", 0o600);
        await file.close();
      }),
    async removeDirectory(path) {
      await orMissing(`remove directory ${path}`, () => rmdir(path));
    },
    async removeFile(path) {
      await orMissing(`remove ${path}`, () => unlink(path));
      // Also where it was missing: an earlier call may have removed it and not come to this.
      await orMissing(`remove ${path}`, () => syncDirectory(dirname(path)));
    },
    stat: async (path) => {
      const found = await orMissing(`look at ${path}`, () => lstat(path, { bigint: true }));
      return found === undefined ? undefined : toFileStat(found);
    },
    resolve: async (path) => {
      const parent = await orMissing(`resolve ${path}`, () => realpath(dirname(path)));
      return parent === undefined ? undefined : join(parent, basename(path));
    },
  };
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    if (codeOf(error) === "EEXIST" && (await lstat(path)).isDirectory()) return;
    throw error;
  }
  await syncDirectory(dirname(path));
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export function createLinuxImages(tools: Tools): HostImages {
  async function resize(path: string, sizeBytes: bigint, thick: boolean, flags: string): Promise<void> {
    await failing(`size ${path}`, async () => {
      const file = await open(path, flags, 0o600);
      try {
        // Never smaller: an earlier growth may have gone further than its record, and hold data by now.
        const { size } = await file.stat();
        if (BigInt(size) < sizeBytes) await file.truncate(Number(sizeBytes));
        await file.sync();
      } finally {
        await file.close();
      }
    });
    if (thick) {
      await tools.run("fallocate", ["--length", String(sizeBytes), "--", path], { timeoutMs: COPY_MS_MAX });
    }
  }

  async function sync(path: string): Promise<void> {
    const file = await open(path, "r");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }

  return {
    create: (path, sizeBytes, { thick }) => resize(path, sizeBytes, thick, "w"),
    grow: (path, sizeBytes, { thick }) => resize(path, sizeBytes, thick, "r+"),
    firstNonZero: (path) => firstNonZero(tools, path),
    read: (path, offsetBytes) => readChunks(path, offsetBytes),
    async copy(from, to, { signal } = {}) {
      const args = ["--sparse=always", "--reflink=auto", "--", from, to];
      await tools.run("cp", args, { timeoutMs: COPY_MS_MAX, signal });
      await failing(`sync ${to}`, () => sync(to));
    },
    async clone(from, to) {
      // FICLONE: writers wait for the length of one call of the kernel, however large the file.
      const answer = await tools.run("cp", ["--reflink=always", "--", from, to], {
        timeoutMs: COPY_MS_MAX,
        ok: [1],
      });
      if (answer.exitCode === 0) return failing(`sync ${to}`, () => sync(to));
      await orMissing(`remove ${to}`, () => unlink(to));
      const cannot = /not supported|inappropriate ioctl|cross-device|invalid argument/i.test(answer.stderr);
      throw new HostError(
        cannot ? "NotSupported" : "Failed",
        `clone ${from}: ${answer.stderr.slice(-120).trim()}`,
      );
    },
    async pool(directory) {
      const { bavail, blocks, bsize } = await failing(`free space of ${directory}`, () =>
        statfs(directory, { bigint: true }),
      );
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
    },
  };
}

const CHUNK_BYTES = 1 << 20;

async function* readChunks(path: string, offsetBytes: bigint): AsyncGenerator<Uint8Array, void> {
  const file = await failing(`open ${path}`, () => open(path, "r"));
  try {
    for (let at = Number(offsetBytes); ; at += CHUNK_BYTES) {
      const chunk = Buffer.alloc(CHUNK_BYTES);
      const { bytesRead } = await failing(`read ${path}`, () => file.read(chunk, 0, CHUNK_BYTES, at));
      if (bytesRead > 0) yield chunk.subarray(0, bytesRead);
      if (bytesRead < CHUNK_BYTES) return;
    }
  } finally {
    await file.close();
  }
}

export async function usageOf(path: string): Promise<Usage> {
  const { bsize, blocks, bfree, bavail, files, ffree } = await failing(`usage of ${path}`, () =>
    statfs(path, { bigint: true }),
  );
  return {
    totalBytes: blocks * bsize,
    usedBytes: (blocks - bfree) * bsize,
    availableBytes: bavail * bsize,
    totalInodes: files,
    usedInodes: files - ffree,
    freeInodes: ffree,
  };
}

function toFileStat(found: BigIntStats): FileStat {
  const kind = found.isFile()
    ? "file"
    : found.isDirectory()
      ? "directory"
      : found.isBlockDevice()
        ? "block"
        : found.isSymbolicLink()
          ? "symlink"
          : "other";
  return {
    kind,
    sizeBytes: found.size,
    allocatedBytes: found.blocks * 512n,
    identity: `${found.dev}/${found.ino}`,
    ...(kind === "block" ? { deviceNumber: numberOf(found.rdev) } : {}),
  };
}

/** The kernel's `major:minor` of a device number, as glibc packs it. */
export function numberOf(device: bigint): string {
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn & 0xffffffffn);
  return `${major}:${minor}`;
}
