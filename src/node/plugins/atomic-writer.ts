import { dirname, join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Host, HostFiles } from "../host.ts";
import {
  DATA_LINK,
  DATA_LINK_NEW,
  planAtomicWrite,
  throughData,
  VERSION,
  type AtomicPlan,
  type Listing,
  type StoredFile,
} from "./atomic-plan.ts";
import { validatePayload, type Payload } from "./payload.ts";

export interface AtomicWriterDeps {
  readonly host: Pick<Host, "files">;
  readonly clock: Clock;
  readonly random: Random;
}

export interface AtomicWrite {
  readonly directory: string;
  readonly payload: Payload;
  readonly fsGroup?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Makes a directory hold a payload, in one moment for whoever reads it. A failure before that moment leaves the version
 * before; so does a crash, and the next write clears up after it. The caller sees to it that only one writes at a time.
 */
export async function writeAtomically(
  { host: { files }, clock, random }: AtomicWriterDeps,
  { directory, payload: unchecked, fsGroup, signal }: AtomicWrite,
): Promise<"written" | "unchanged"> {
  const payload = validatePayload(unchecked);
  const listing = await listVolume(files, directory);
  const stored = await readVersion(files, directory, listing.get(DATA_LINK)?.target);
  const plan = planAtomicWrite({ listing, stored, payload, fsGroup });
  for (const name of plan.debris) await files.removeTree(join(directory, name));
  if (plan.rewrite) {
    const version = versionName(clock, random);
    try {
      await writeVersion(files, join(directory, version), payload);
      if (fsGroup !== undefined) await giveToGroup(files, { directory, fsGroup, signal });
      await switchTo(files, directory, version);
    } catch (error) {
      // Best effort, so that the pod's memory is not filled by what failed for want of it; the next write looks again.
      await files.removeTree(join(directory, version)).catch(() => undefined);
      throw error;
    }
  }
  await relink(files, directory, plan);
  if (plan.rewrite && plan.current !== undefined) await files.removeTree(join(directory, plan.current));
  return plan.rewrite ? "written" : "unchanged";
}

/** What is in the volume's own directory, with where its links point. */
async function listVolume(files: HostFiles, directory: string): Promise<Listing> {
  const entries = (await files.list(directory)) ?? [];
  const found = entries.map(async ({ name, kind }) => {
    const target = kind === "symlink" ? await files.readLink(join(directory, name)) : undefined;
    return [name, { target }] as const;
  });
  return new Map(await Promise.all(found));
}

async function readVersion(
  files: HostFiles,
  directory: string,
  version: string | undefined,
): Promise<ReadonlyMap<string, StoredFile>> {
  const stored = new Map<string, StoredFile>();
  async function visit(below: string): Promise<void> {
    const entries = (await files.list(join(directory, version ?? "", below))) ?? [];
    for (const { name, kind } of entries) {
      const path = join(below, name);
      if (kind === "directory") await visit(path);
      else stored.set(path, await readStored(files, join(directory, version ?? "", path)));
    }
  }
  // Of a link that points elsewhere nothing is read: it may point at anything.
  if (version !== undefined && VERSION.test(version)) await visit("");
  return stored;
}

async function readStored(files: HostFiles, path: string): Promise<StoredFile> {
  const stat = await files.stat(path);
  // Whatever is no file differs from every file that is wanted.
  const bytes = stat?.kind === "file" ? await files.readBytes(path) : undefined;
  const { mode = -1, uid = -1, gid = -1 } = stat ?? {};
  return { bytes: bytes ?? new Uint8Array(), mode: bytes === undefined ? -1 : mode, uid, gid };
}

/** `..2026_11_16_01_30_00.123456789`: people read when it was, the number makes it new. */
function versionName(clock: Clock, random: Random): string {
  const stamp = clock.wall().toISOString().slice(0, 19).replaceAll(/[-T:]/g, "_");
  return `..${stamp}.${random.int(1_000_000_000)}`;
}

async function writeVersion(files: HostFiles, version: string, payload: Payload): Promise<void> {
  await files.makeDirectories(version, 0o755);
  for (const [path, { bytes, mode, uid }] of payload) {
    const file = join(version, path);
    if (dirname(path) !== ".") await files.makeDirectories(dirname(file), 0o755);
    await files.writeFile(file, bytes, mode);
    if (uid !== undefined) await files.chown(file, { uid });
  }
}

/** The whole volume and not only what is new: its own directory and mount points in it belong to the group as well. */
async function giveToGroup(
  files: HostFiles,
  { directory, fsGroup, signal }: { directory: string; fsGroup: number; signal: AbortSignal },
): Promise<void> {
  await files.applyGroup({ path: directory, gid: fsGroup, readOnly: true, onRootMismatch: false, signal });
}

/** The moment: one rename. */
async function switchTo(files: HostFiles, directory: string, version: string): Promise<void> {
  const next = join(directory, DATA_LINK_NEW);
  await files.symlink(version, next);
  await files.rename(next, join(directory, DATA_LINK));
}

async function relink(files: HostFiles, directory: string, plan: AtomicPlan): Promise<void> {
  for (const name of plan.linksToAdd) {
    const path = join(directory, name);
    // What is there in its place is an old link or nothing; a directory of somebody's making stays and is an error.
    await files.removeFile(path);
    await files.symlink(throughData(name), path);
  }
  for (const name of plan.linksToRemove) await files.removeFile(join(directory, name));
}
