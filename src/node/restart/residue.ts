import { join } from "node:path";
import { CSI_PLUGIN } from "../../volumes/names.ts";
import type { Context } from "../context.ts";
import { HostError } from "../host.ts";
import { inParallel } from "./parallel.ts";
import type { FoundEntry } from "./reconstruct.ts";

/**
 * What a crash leaves between making a directory and writing into it, before any driver was asked for anything: drafts of
 * records and empty directories. Only rmdir and the draft's own name, so that nothing else is ever lost.
 */

/** The record by which the CSI plugin knows its directories again. */
const RECORD = "vol_data.json";
/** A record that was being written; without the rename at its end it was never one. */
const DRAFT = `${RECORD}.draft`;
/** Directories of staged volumes are named by the hash of their handle. */
const HASH = /^[0-9a-f]{64}$/;

type Place = Pick<Context, "host" | "paths">;

/** Below `pods/`, where there is no record: its draft would keep the directory for ever. Beside one it goes with it. */
export async function removeDraft({ host }: Place, { pluginName, found }: FoundEntry): Promise<void> {
  if (pluginName === CSI_PLUGIN && found.mode === "Filesystem")
    await host.files.removeFile(join(found.path, DRAFT));
}

/** Whether the directory of a pod's volume holds nothing but its record: somebody died between unmount and rmdir. */
export async function isResidue({ host }: Place, { pluginName, found }: FoundEntry): Promise<boolean> {
  if (pluginName !== CSI_PLUGIN || found.mode !== "Filesystem") return false;
  const inside = await host.files.list(found.path).catch(() => undefined);
  const names = inside?.map(({ name }) => name) ?? [];
  return names.length > 0 && names.every((name) => name === RECORD || name === DRAFT);
}

/** Below `plugins/kubernetes.io/csi`, at the start, when no step runs; `known` are directories with a record. */
export async function cleanStaging(place: Place, known: ReadonlySet<string>): Promise<void> {
  const base = place.paths.plugin(CSI_PLUGIN);
  for (const driver of await directoriesIn(place, base)) {
    const directory = join(base, driver);
    const isBlock = driver === "volumeDevices";
    const isVolume = (name: string) => (isBlock ? name !== "staging" && name !== "publish" : HASH.test(name));
    const volumes = (await directoriesIn(place, directory))
      .filter(isVolume)
      .map((name) => join(directory, name))
      .filter((volume) => !known.has(volume));
    await inParallel(volumes, (volume) => cleanVolume(place, volume, isBlock ? "data" : ""));
  }
}

async function cleanVolume({ host }: Place, directory: string, recordIn: string): Promise<void> {
  const { files } = host;
  // Whoever removes a record takes its draft along.
  if ((await files.stat(join(directory, recordIn, RECORD))) !== undefined) return;
  await files.removeFile(join(directory, recordIn, DRAFT));
  for (const name of ["globalmount", "dev", "data", ""])
    await files.removeDirectory(join(directory, name)).catch((error: unknown) => {
      // Something is mounted there, or in it: no residue then.
      const kept = error instanceof HostError && (error.code === "NotEmpty" || error.code === "Busy");
      if (!kept) throw error;
    });
}

async function directoriesIn({ host }: Place, path: string): Promise<readonly string[]> {
  const entries = (await host.files.list(path)) ?? [];
  return entries.filter(({ kind }) => kind === "directory").map(({ name }) => name);
}
