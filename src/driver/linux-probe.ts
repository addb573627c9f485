import { open, readFile, type FileHandle } from "node:fs/promises";
import { HostError, type Content, type FsType } from "./host.ts";
import { failing } from "./linux-failing.ts";
import type { Tools } from "./linux-exec.ts";

/** What is on a device: blkid's word, compared with what is read from the device itself. */

const PROBE_MS_MAX = 30_000;
const SUPERBLOCK_BYTES = 4_096;
/** Every filesystem, partition table and array that is known keeps a signature in the first or the last MiB. */
const END_BYTES = 1 << 20;

export async function probe(tools: Tools, device: string): Promise<Content> {
  const { exitCode, stdout } = await tools.run("blkid", ["--probe", "--output", "export", device], {
    timeoutMs: PROBE_MS_MAX,
    ok: [2, 8],
  });
  // Exit 2: nothing was found, or the device could not be read. Which of them it is only reading tells.
  if (exitCode === 2) return probeEnds(device);
  if (exitCode === 8) return { kind: "other", what: "more than one signature" };
  const values = new Map(
    stdout
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const),
  );
  const table = values.get("PTTYPE");
  if (table !== undefined) return { kind: "other", what: `a ${table} partition table` };
  const type = values.get("TYPE");
  return type === undefined ? { kind: "other", what: "something unknown" } : compared(device, type);
}

async function probeEnds(device: string): Promise<Content> {
  const sectors = await failing(`size of ${device}`, () =>
    readFile(`/sys/class/block/${device.replace("/dev/", "")}/size`, "utf8"),
  );
  const sizeBytes = 512 * Number(sectors.trim());
  const length = Math.min(END_BYTES, sizeBytes);
  const ends = await reading(device, async (file) => [
    await bytesAt(file, 0, length),
    await bytesAt(file, sizeBytes - length, length),
  ]);
  if (ends.every((bytes) => bytes.every((byte) => byte === 0))) return { kind: "blank" };
  return { kind: "other", what: "data of a kind that blkid does not know" };
}

/** A tool that names another filesystem than the superblock does is not believed. */
async function compared(device: string, type: string): Promise<Content> {
  if (type !== "ext4" && type !== "xfs") return { kind: "filesystem", type, neverMounted: false };
  const block = await reading(device, (file) => bytesAt(file, 0, SUPERBLOCK_BYTES));
  if (!isSuperblock(block, type))
    return { kind: "other", what: `what blkid calls ${type}, without a superblock of ${type}` };
  return { kind: "filesystem", type, neverMounted: neverMounted(block, type) };
}

const EXT4_AT = 1_024;

function isSuperblock(block: Buffer, type: FsType): boolean {
  return type === "ext4"
    ? block.readUInt16LE(EXT4_AT + 0x38) === 0xef53
    : block.toString("latin1", 0, 4) === "XFSB";
}

/** ext4: time of the last mount and the count of mounts; xfs: mkfs sets `inprogress` until it is done. */
function neverMounted(block: Buffer, type: FsType): boolean {
  if (type === "xfs") return block.readUInt8(126) !== 0;
  return block.readUInt32LE(EXT4_AT + 0x2c) === 0 && block.readUInt16LE(EXT4_AT + 0x34) === 0;
}

/** From the superblock: no tool says it the same way in all versions. */
export async function filesystemBytes(device: string, type: FsType): Promise<bigint> {
  const block = await reading(device, (file) => bytesAt(file, 0, SUPERBLOCK_BYTES));
  if (!isSuperblock(block, type)) throw new HostError("Failed", `${device} has no superblock of ${type}`);
  if (type === "xfs") return BigInt(block.readUInt32BE(4)) * block.readBigUInt64BE(8);
  const sb = block.subarray(EXT4_AT);
  const high = (sb.readUInt32LE(0x60) & 0x80) === 0 ? 0n : BigInt(sb.readUInt32LE(0x150));
  return ((high << 32n) | BigInt(sb.readUInt32LE(4))) * BigInt(1_024 << sb.readUInt32LE(0x18));
}

function reading<T>(device: string, work: (file: FileHandle) => Promise<T>): Promise<T> {
  return failing(`read ${device}`, async () => {
    const file = await open(device, "r");
    try {
      return await work(file);
    } finally {
      await file.close();
    }
  });
}

async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(bytes, done, length - done, at + done);
    if (bytesRead === 0) throw new Error(`only ${at + done} of ${at + length} bytes could be read`);
    done += bytesRead;
  }
  return bytes;
}
