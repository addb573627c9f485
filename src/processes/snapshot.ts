import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import { hasLmdbStore, readLmdbStore, type StoreContent } from "../apiserver/store/lmdb-snapshot.ts";
import { StoreError } from "../apiserver/store/store.ts";
import { systemCode } from "../kube/config/world.ts";
import { ProcessError } from "./errors.ts";
import { lockDirectory, type Lock } from "./lock.ts";
import { productVersion } from "./product.ts";
import { readSnapshotFile, writeSnapshotFile } from "./snapshot-file.ts";
import { encodeSnapshot, FILE_NAME, type SnapshotFile, type SnapshotHeader } from "./snapshot-format.ts";

/** What a snapshot holds, for people and for programs. */
export interface SnapshotStatus extends Omit<SnapshotHeader, "files"> {
  readonly file: string;
  readonly sizeBytes: number;
  /** Names of the keys and certificates in it. */
  readonly files: readonly string[];
  /** How many objects of each resource, most first. */
  readonly resources: Readonly<Record<string, number>>;
}

export interface SaveOptions {
  readonly dataDir: string;
  readonly file: string;
  readonly overwrite: boolean;
}

/**
 * Everything a data directory needs to serve again, as of one revision: objects, certificates, the key that signs tokens.
 * The server may be running; its writers are not held up. See `readCommitted` for how.
 */
export async function saveSnapshot(
  { clock }: { readonly clock: Clock },
  { dataDir, file, overwrite }: SaveOptions,
): Promise<SnapshotStatus> {
  const directory = resolve(dataDir);
  const content = await readStore(clock, directory);
  const files = await readPki(join(directory, "pki"));
  const lines = encodeSnapshot(content, files, { version: productVersion(), createdAt: clock.wall() });
  await writeSnapshotFile(file, lines, { replace: overwrite });
  // What is reported is what can be read back.
  return readSnapshotStatus(file);
}

export async function readSnapshotStatus(file: string): Promise<SnapshotStatus> {
  const { content, sizeBytes } = await readSnapshotFile(file);
  const files = content.files.map(({ name }) => name);
  return { file: resolve(file), sizeBytes, ...content.header, files, resources: countResources(content) };
}

async function readStore(clock: Clock, dataDir: string): Promise<StoreContent> {
  const directory = join(dataDir, "store");
  try {
    if (!(await hasLmdbStore(directory))) throw noStore(dataDir);
    const lock = await lockIfFree(dataDir);
    try {
      return await readLmdbStore(clock, { directory, isInUse: lock === undefined });
    } finally {
      await lock?.release();
    }
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new ProcessError("BadDataDir", `cannot take a snapshot of ${dataDir}: ${error.message}`, {
      cause: error,
    });
  }
}

/** Undefined where a server has it. Without one, the lock keeps a server from starting until the file is read. */
async function lockIfFree(dataDir: string): Promise<Lock | undefined> {
  try {
    return await lockDirectory(dataDir);
  } catch (error) {
    if (error instanceof ProcessError && error.code === "DataDirInUse") return undefined;
    throw error;
  }
}

/** Looks of a server that is just renewing a certificate: each pair takes milliseconds, once a year. */
const PKI_LOOKS_MAX = 10;

/** Until two looks agree: a key and a certificate that do not belong together would be of no use. */
async function readPki(directory: string): Promise<readonly SnapshotFile[]> {
  let seen = await lookAtPki(directory);
  for (let look = 1; look < PKI_LOOKS_MAX; look++) {
    const again = await lookAtPki(directory);
    if (JSON.stringify(again) === JSON.stringify(seen)) return seen;
    seen = again;
  }
  throw new ProcessError("BadDataDir", `cannot take a snapshot: ${directory} keeps changing; try again`);
}

async function lookAtPki(directory: string): Promise<readonly SnapshotFile[]> {
  try {
    const names = (await readdir(directory))
      .map((name) => `pki/${name}`)
      .filter((name) => FILE_NAME.test(name));
    return await Promise.all(
      names.sort().map(async (name) => ({ name, text: await readFile(join(directory, "..", name), "utf8") })),
    );
  } catch (error) {
    const why = systemCode(error) ?? String(error);
    throw new ProcessError("BadDataDir", `cannot take a snapshot: reading ${directory}: ${why}`, {
      cause: error,
    });
  }
}

function countResources({ objects }: StoreContent): Readonly<Record<string, number>> {
  const counts = new Map<string, number>();
  for (const { key } of objects) counts.set(key.resource, (counts.get(key.resource) ?? 0) + 1);
  return Object.fromEntries([...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)));
}

function noStore(dataDir: string): ProcessError {
  return new ProcessError(
    "BadDataDir",
    `cannot take a snapshot of ${dataDir}: there is no store in it; name the directory of a server with --data-dir`,
  );
}
