import { crc32 } from "node:zlib";
import { StoreError, type StoredObject, type StoreEvent } from "./store.ts";

/**
 * What stands in the file. There are two kinds of record:
 *
 * - the head, one: the format, and the revision at which history begins;
 * - a write, one a revision: what happened to which object, and its text. The write that made an object's
 *   present version is that object; there is no second copy of it.
 *
 * Each record carries a checksum over its key and its content: LMDB has none, and a disk may lie.
 */

/** Raised when a reader of this version could misunderstand what a later one writes. */
const FORMAT_VERSION = 1;

export interface Head {
  readonly compactedRevision: number;
}

/** A write as it was recorded. */
export interface WriteRecord {
  readonly type: StoreEvent["type"];
  readonly object: StoredObject;
  /** Of the version it replaced; 0 if there was none. */
  readonly previousRevision: number;
  /** Wall time, because a monotonic clock means nothing to the next process. */
  readonly committedAtMs: number;
}

type DecodedRecord =
  { readonly kind: "head"; readonly head: Head } | { readonly kind: "write"; readonly write: WriteRecord };

const HEAD_TAG = 1;
const WRITE_TAG = 2;
const TYPES = ["created", "updated", "deleted"] as const;

/** The head sorts first, writes follow in the order of their revisions. */
export const HEAD_KEY = Buffer.from([HEAD_TAG]);

export function writeKey(revision: number): Buffer {
  const key = Buffer.allocUnsafe(9);
  key[0] = WRITE_TAG;
  putUint64(key, revision, 1);
  return key;
}

/** u16 format, u32 checksum, u64 compacted revision. The format stays in front whatever else changes. */
export function encodeHead({ compactedRevision }: Head): Buffer {
  const value = Buffer.allocUnsafe(14);
  value.writeUInt16BE(FORMAT_VERSION, 0);
  putUint64(value, compactedRevision, 6);
  value.writeUInt32BE(checksum(HEAD_KEY, value.subarray(6)), 2);
  return value;
}

/** Offsets of a write's fields: u32 checksum of all that follows, u8 type, u64, u64, three u16 lengths, texts. */
const TYPE_AT = 4;
const PREVIOUS_AT = 5;
const COMMITTED_AT = 13;
const LENGTHS_AT = 21;
const TEXTS_AT = 27;

export function encodeWrite(key: Buffer, write: WriteRecord): Buffer {
  const { resource, namespace, name } = write.object.key;
  const names = [resource, namespace, name];
  const lengths = names.map((part) => Buffer.byteLength(part));
  const namesBytes = lengths.reduce((sum, length) => sum + length, 0);
  const value = Buffer.allocUnsafe(TEXTS_AT + namesBytes + Buffer.byteLength(write.object.text));
  value[TYPE_AT] = TYPES.indexOf(write.type);
  putUint64(value, write.previousRevision, PREVIOUS_AT);
  putUint64(value, write.committedAtMs, COMMITTED_AT);
  lengths.forEach((length, index) => value.writeUInt16BE(length, LENGTHS_AT + 2 * index));
  value.write(names.join(""), TEXTS_AT, "utf8");
  value.write(write.object.text, TEXTS_AT + namesBytes, "utf8");
  value.writeUInt32BE(checksum(key, value.subarray(TYPE_AT)), 0);
  return value;
}

/** `where` names the file in messages. */
export function decodeRecord(key: Buffer, value: Buffer, where: string): DecodedRecord {
  if (key.equals(HEAD_KEY)) return { kind: "head", head: decodeHead(value, where) };
  if (key.length === 9 && key[0] === WRITE_TAG)
    return { kind: "write", write: decodeWrite(key, value, where) };
  throw damaged(where, `a key that no version writes (${key.toString("hex")})`);
}

function decodeHead(value: Buffer, where: string): Head {
  const format = value.length < 2 ? 0 : value.readUInt16BE(0);
  if (format > FORMAT_VERSION) {
    throw new StoreError(
      "NewerFormat",
      `open ${where}: it has format ${format} and this version reads up to ${FORMAT_VERSION}; ` +
        "start the version that wrote it, or another data directory",
    );
  }
  if (value.length !== 14 || value.readUInt32BE(2) !== checksum(HEAD_KEY, value.subarray(6))) {
    throw damaged(where, "the head record does not match its checksum");
  }
  return { compactedRevision: readUint64(value, 6) };
}

/** Of the key of a write; undefined for any other. */
export function revisionOf(key: Buffer): number | undefined {
  if (key.length !== 9 || key[0] !== WRITE_TAG) return undefined;
  const revision = readUint64(key, 1);
  return Number.isSafeInteger(revision) ? revision : undefined;
}

/** What a damaged record seems to say. Good for naming what is lost, and for nothing else. */
export function guessWrite(key: Buffer, value: Buffer): WriteRecord | undefined {
  try {
    const write = parseWrite(key, value, "");
    const { resource, namespace, name } = write.object.key;
    const isPlausible = [resource, namespace, name].every((part) => /^[\w.:-]*$/.test(part));
    return isPlausible && resource !== "" && name !== "" ? write : undefined;
  } catch {
    return undefined;
  }
}

function decodeWrite(key: Buffer, value: Buffer, where: string): WriteRecord {
  if (value.length < TEXTS_AT || value.readUInt32BE(0) !== checksum(key, value.subarray(TYPE_AT))) {
    throw damaged(where, `the record of revision ${readUint64(key, 1)} does not match its checksum`);
  }
  return parseWrite(key, value, where);
}

function parseWrite(key: Buffer, value: Buffer, where: string): WriteRecord {
  const revision = readUint64(key, 1);
  const type = TYPES[value[TYPE_AT] ?? TYPES.length];
  let at = TEXTS_AT;
  const take = (length: number) => value.toString("utf8", at, (at += length));
  const [resource, namespace, name] = [0, 1, 2].map((index) =>
    take(value.readUInt16BE(LENGTHS_AT + 2 * index)),
  ) as [string, string, string];
  if (type === undefined || at > value.length) {
    throw damaged(where, `the record of revision ${revision} has a correct checksum and makes no sense`);
  }
  return {
    type,
    object: { key: { resource, namespace, name }, revision, text: value.toString("utf8", at) },
    previousRevision: readUint64(value, PREVIOUS_AT),
    committedAtMs: readUint64(value, COMMITTED_AT),
  };
}

/** Nothing repairs a damaged file in place; the way back is a snapshot, or a copy of what is sound. */
export function damaged(where: string, what: string): StoreError {
  return new StoreError(
    "Corrupt",
    `read ${where}: ${what}; nothing was changed. Restore a snapshot, or copy what is sound: mooring apiserver repair --data-dir DIR --to NEW`,
  );
}

function checksum(key: Buffer, content: Buffer): number {
  return crc32(content, crc32(key));
}

/** Revisions and times stay below 2^53, so two halves say them exactly, without a BigInt each. */
function putUint64(buffer: Buffer, value: number, at: number): void {
  buffer.writeUInt32BE(Math.floor(value / 2 ** 32), at);
  buffer.writeUInt32BE(value >>> 0, at + 4);
}

function readUint64(buffer: Buffer, at: number): number {
  return buffer.readUInt32BE(at) * 2 ** 32 + buffer.readUInt32BE(at + 4);
}
