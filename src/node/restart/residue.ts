import { join } from "node:path";
import { CSI_PLUGIN } from "../../volumes/names.ts";
import type { Context } from "../context.ts";
import { HostError } from "../host.ts";
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

/** Below `pods/`: a draft beside a record would keep its directory for ever. */
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

/** Below `plugins/kubernetes.io/csi`, at the start, when no step runs. */
export async function cleanStaging(place: Place): Promise<void> {
  const base = place.paths.plugin(CSI_PLUGIN);
  for (const driver of await directoriesIn(place, base)) {
    const directory = join(base, driver);
    const isBlock = driver === "volumeDevices";
    for (const name of await directoriesIn(place, directory))
      if (isBlock ? name !== "staging" && name !== "publish" : HASH.test(name))
        await cleanVolume(place, join(directory, name), isBlock ? "data" : "");
  }
}

async function cleanVolume({ host }: Place, directory: string, recordIn: string): Promise<void> {
  const { files } = host;
  await files.removeFile(join(directory, recordIn, DRAFT));
  if ((await files.stat(join(directory, recordIn, RECORD))) !== undefined) return;
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
