import { createHash, type Hash } from "node:crypto";
import { assert } from "../base/assert.ts";
import type { StoreContent } from "../apiserver/store/lmdb-snapshot.ts";
import type { StoredObject } from "../apiserver/store/store.ts";
import { ProcessError } from "./errors.ts";

/**
 * A snapshot of a data directory as one file of JSON lines, so that `head -1` says what it is and `jq` finds an object
 * in it:
 *
 *   {"mooring":"snapshot","formatVersion":1,"version":…,"createdAt":…,"revision":…,"objects":…,"files":…}
 *   {"file":"pki/ca.crt","text":…}                                        one a file
 *   {"key":[resource,namespace,name],"revision":…,"object":{…}}           one an object, in order of revision
 *   {"sha256":…}                                                          of every byte before this line
 *
 * An object's text is copied as it stands, never parsed and written again: clients compare it. A file without its last
 * line was cut short, one whose bytes do not match it was changed, and a reader gives out nothing before it
 * has seen that line.
 */
export interface SnapshotContent extends StoreContent {
  readonly header: SnapshotHeader;
  readonly files: readonly SnapshotFile[];
}

export interface SnapshotHeader {
  readonly formatVersion: number;
  /** Of the program that made it. */
  readonly version: string;
  /** RFC 3339. */
  readonly createdAt: string;
  readonly revision: number;
  readonly objects: number;
  readonly files: number;
}

export interface SnapshotFile {
  /** `pki/ca.crt`: below the data directory, with slashes. */
  readonly name: string;
  readonly text: string;
}

/** Raised when a reader of this version could misunderstand what a later one writes. */
const FORMAT_VERSION = 1;
/** The largest object is 3 MiB; escaped as a string it may take six times that. */
const LINE_BYTES_MAX = 32 * 2 ** 20;
/** Keys and certificates, and nothing that could lead out of the data directory. */
export const FILE_NAME = /^pki\/[a-z0-9][a-z0-9-]*\.(crt|key)$/;

/** Lines, each with its end. */
export function* encodeSnapshot(
  { revision, objects }: StoreContent,
  files: readonly SnapshotFile[],
  { version, createdAt }: { readonly version: string; readonly createdAt: Date },
): Iterable<string> {
  const hash = createHash("sha256");
  const line = (text: string) => {
    hash.update(text).update("\n");
    return `${text}\n`;
  };
  const header: SnapshotHeader = {
    formatVersion: FORMAT_VERSION,
    version,
    createdAt: createdAt.toISOString(),
    revision,
    objects: objects.length,
    files: files.length,
  };
  yield line(JSON.stringify({ mooring: "snapshot", ...header }));
  for (const { name, text } of files) yield line(JSON.stringify({ file: name, text }));
  for (const object of objects) yield line(encodeObject(object));
  yield `${JSON.stringify({ sha256: hash.digest("hex") })}\n`;
}

const OBJECT_FIELD = ',"object":';

function encodeObject({ key, revision, text }: StoredObject): string {
  const head = JSON.stringify({ key: [key.resource, key.namespace, key.name], revision }).slice(0, -1);
  // Whatever the store holds comes back, also what no API server would have written.
  const isObject = /^\{.*\}$/.test(text);
  return isObject ? `${head}${OBJECT_FIELD}${text}}` : `${head},"text":${JSON.stringify(text)}}`;
}

/** All of a snapshot, once all of it is known to be as it was written. `path` is named in messages. */
export async function decodeSnapshot(
  path: string,
  chunks: AsyncIterable<Uint8Array>,
): Promise<SnapshotContent> {
  const decoder = new Decoder(path);
  for await (const line of linesOf(chunks)) decoder.take(line);
  return decoder.finish();
}

class Decoder {
  readonly #path: string;
  readonly #hash: Hash = createHash("sha256");
  readonly #files: SnapshotFile[] = [];
  readonly #objects: StoredObject[] = [];
  readonly #names = new Set<string>();
  #header: SnapshotHeader | undefined;
  #line = 0;
  #isComplete = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** A line without its end; the last of a file that was cut short may lack one. */
  take({ bytes, hasEnd }: Line): void {
    this.#line++;
    const text = bytes.toString("utf8");
    if (this.#header === undefined) this.#header = this.#decodeHeader(text);
    else if (this.#isComplete) throw this.#damaged("it goes on after its end");
    else if (!hasEnd) throw this.#cutShort();
    else this.#takeBody(text);
    if (!this.#isComplete) this.#hash.update(bytes).update("\n");
  }

  finish(): SnapshotContent {
    const header = this.#header;
    if (header === undefined) throw this.#noSnapshot();
    if (!this.#isComplete) throw this.#cutShort();
    if (header.objects !== this.#objects.length || header.files !== this.#files.length) {
      throw this.#damaged("it does not hold as much as its first line says");
    }
    return { header, revision: header.revision, files: this.#files, objects: this.#objects };
  }

  #decodeHeader(text: string): SnapshotHeader {
    const value = parseObject(text);
    if (value?.["mooring"] !== "snapshot") throw this.#noSnapshot();
    const { formatVersion, version, createdAt, revision, objects, files } = value;
    if (typeof formatVersion === "number" && formatVersion > FORMAT_VERSION) {
      throw this.#bad(
        `it has format ${formatVersion} and this version reads up to ${FORMAT_VERSION}; use the version that made it (${String(version)})`,
      );
    }
    if (
      !isCount(formatVersion) ||
      !isCount(revision) ||
      !isCount(objects) ||
      !isCount(files) ||
      typeof version !== "string" ||
      typeof createdAt !== "string" ||
      Number.isNaN(Date.parse(createdAt))
    ) {
      throw this.#damaged("its first line makes no sense");
    }
    return { formatVersion, version, createdAt, revision, objects, files };
  }

  #takeBody(text: string): void {
    const at = text.indexOf(OBJECT_FIELD);
    const value = parseObject(at < 0 ? text : `${text.slice(0, at)}}`);
    if (value === undefined) throw this.#damaged(`line ${this.#line} makes no sense`);
    if ("sha256" in value) this.#end(value["sha256"]);
    else if ("file" in value) this.#addFile(value);
    else this.#addObject(value, at < 0 ? value["text"] : text.slice(at + OBJECT_FIELD.length, -1));
  }

  #end(expected: unknown): void {
    if (this.#hash.digest("hex") !== expected) throw this.#damaged("its bytes do not match its checksum");
    this.#isComplete = true;
  }

  #addFile({ file, text }: Record<string, unknown>): void {
    if (typeof file !== "string" || !FILE_NAME.test(file) || typeof text !== "string" || this.#isKnown(file))
      throw this.#damaged(`line ${this.#line} is no file of a data directory`);
    this.#files.push({ name: file, text });
  }

  #addObject({ key, revision }: Record<string, unknown>, text: unknown): void {
    const last = this.#objects.at(-1)?.revision ?? 0;
    const isInOrder = isCount(revision) && revision > last && revision <= (this.#header?.revision ?? 0);
    if (!isKey(key) || !isInOrder || typeof text !== "string" || this.#isKnown(key.join("\0"))) {
      throw this.#damaged(`line ${this.#line} is no object of a store`);
    }
    const [resource, namespace, name] = key;
    this.#objects.push({ key: { resource, namespace, name }, revision, text });
  }

  /** Nothing may be there twice. */
  #isKnown(name: string): boolean {
    const isKnown = this.#names.has(name);
    this.#names.add(name);
    return isKnown;
  }

  #cutShort(): ProcessError {
    return this.#bad(
      `it is cut short after ${this.#objects.length} of ${this.#header?.objects ?? 0} objects; use another snapshot`,
    );
  }

  #damaged(what: string): ProcessError {
    return this.#bad(`it is damaged: ${what}; use another snapshot`);
  }

  #noSnapshot(): ProcessError {
    return this.#bad("it is no snapshot of mooring; name a file that `mooring apiserver snapshot save` made");
  }

  #bad(why: string): ProcessError {
    return new ProcessError("BadFile", `cannot read snapshot ${this.#path}: ${why}. Nothing was changed`);
  }
}

interface Line {
  readonly bytes: Buffer;
  readonly hasEnd: boolean;
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncIterable<Line> {
  let begun: Buffer[] = [];
  let begunBytes = 0;
  for await (const chunk of chunks) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      yield { bytes: Buffer.concat([...begun, rest.subarray(0, end)]), hasEnd: true };
      [begun, begunBytes, rest] = [[], 0, rest.subarray(end + 1)];
    }
    if (rest.length === 0) continue;
    // A copy: whoever reads the file may use its buffer again.
    begun.push(Buffer.from(rest));
    begunBytes += rest.length;
    // A line without end is not gathered without end; cut here, it makes no sense to whoever gets it.
    if (begunBytes > LINE_BYTES_MAX) break;
  }
  if (begunBytes > 0) yield { bytes: Buffer.concat(begun), hasEnd: false };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    assert(typeof value === "object" && value !== null && !Array.isArray(value), "not an object");
    return value as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isKey(value: unknown): value is [string, string, string] {
  return Array.isArray(value) && value.length === 3 && value.every((part) => typeof part === "string");
}
