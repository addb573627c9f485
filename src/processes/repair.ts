import { readdir, readFile, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { salvageLmdbStore } from "../apiserver/store/lmdb-repair.ts";
import type { Salvaged } from "../apiserver/store/lmdb-salvage.ts";
import { StoreError, type StoreKey } from "../apiserver/store/store.ts";
import type { Clock } from "../base/clock.ts";
import { systemCode } from "../kube/config/world.ts";
import { ProcessError } from "./errors.ts";
import { refuseIfHeld } from "./lock.ts";
import { makeDataDirectory, type Restored } from "./restore.ts";
import { FILE_NAME, type SnapshotFile } from "./snapshot-format.ts";

export interface RepairOptions {
  /** Read, and never written to. */
  readonly dataDir: string;
  /** Not there yet, or empty. */
  readonly to: string;
}

/** What was copied, and what was not. */
export interface Repaired extends Restored, Omit<Salvaged, "objects" | "revision"> {
  readonly from: string;
  /** Keys and certificates that were copied. */
  readonly files: readonly string[];
  /** And those that could not be read: new ones are made at the start. */
  readonly unreadableFiles: readonly string[];
}

/**
 * Copies what is sound of a damaged data directory into a new one, and says what is not. The old one is not touched: what
 * this version cannot read, another may. Revisions go on far above, so that clients of the old server list again.
 */
export async function repairDataDirectory(
  deps: { readonly clock: Clock },
  { dataDir, to }: RepairOptions,
): Promise<Repaired> {
  const from = resolve(dataDir);
  if (from === resolve(to))
    throw refused(from, "--to must name another directory: nothing is changed in place");
  await refuseIfHeld(from);
  const { objects, revision, ...salvaged } = await readStore(join(from, "store"));
  const { files, unreadable } = await readPki(from);
  const writtenAtMs = (await stat(join(from, "store", "data.mdb"))).mtimeMs;
  const restored = await makeDataDirectory(deps, { objects, revision, files, writtenAtMs }, to);
  return {
    from,
    ...restored,
    ...salvaged,
    files: files.map(({ name }) => name),
    unreadableFiles: unreadable,
  };
}

/** `pods/default/web`, or `nodes/node-1`. */
export function describeKey({ resource, namespace, name }: StoreKey): string {
  return namespace === "" ? `${resource}/${name}` : `${resource}/${namespace}/${name}`;
}

async function readStore(directory: string): Promise<Salvaged> {
  try {
    return await salvageLmdbStore(directory);
  } catch (error) {
    if (error instanceof StoreError) throw refused(directory, error.message, error);
    throw refused(directory, systemCode(error) ?? String(error), error);
  }
}

async function readPki(
  dataDir: string,
): Promise<{ readonly files: readonly SnapshotFile[]; readonly unreadable: readonly string[] }> {
  const [files, unreadable]: [SnapshotFile[], string[]] = [[], []];
  const names = await readdir(join(dataDir, "pki")).catch(() => []);
  for (const name of names
    .map((file) => `pki/${file}`)
    .filter((file) => FILE_NAME.test(file))
    .sort()) {
    try {
      files.push({ name, text: await readFile(join(dataDir, name), "utf8") });
    } catch {
      unreadable.push(name);
    }
  }
  return { files, unreadable };
}

function refused(path: string, why: string, cause?: unknown): ProcessError {
  return new ProcessError("BadDataDir", `cannot repair ${path}: ${why}`, { cause });
}
