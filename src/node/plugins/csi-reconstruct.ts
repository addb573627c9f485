import { dirname, join } from "node:path";
import type { HostFiles } from "../host.ts";
import type { FoundVolume, Reconstructed, StagedVolume } from "../plugin.ts";
import { CSI_PLUGIN, csiVolumeName } from "../../volumes/names.ts";
import type { VolumeSpec } from "../../volumes/spec.ts";
import { blockPathsOf } from "./csi-block.ts";
import type { CsiContext } from "./csi-lookups.ts";
import { readRecord, type VolumeRecord } from "./csi-records.ts";

/** What the directory of a pod's volume is, by its record; by where else it is mounted when that cannot be read. */
export async function reconstruct(
  context: CsiContext,
  { mode, path, specName, podUid }: FoundVolume,
): Promise<Reconstructed | undefined> {
  const { files } = context.host;
  const directory = mode === "Block" ? blockPathsOf(context.paths, specName).data : path;
  const lookup = await readRecord(files, directory);
  if (lookup.kind === "found") return fromRecord(lookup.record, { mode, specName });
  context.log.warn("csi record unusable after a restart", { podUid, volume: specName, record: lookup.kind });
  return mode === "Filesystem" ? byMount(context, { path, specName }) : undefined;
}

function fromRecord(
  record: VolumeRecord,
  { mode, specName }: { mode: FoundVolume["mode"]; specName: string },
): Reconstructed {
  const name = record.specVolID ?? specName;
  const { driverName: driver } = record;
  const spec: VolumeSpec =
    record.volumeLifecycleMode === "Ephemeral"
      ? { kind: "inline", volume: { name, csi: { driver } } }
      : persistentSpec(record, { name, mode });
  return { spec, ...labelled(record) };
}

function labelled({ seLinuxMountContext: selinuxLabel }: VolumeRecord) {
  return selinuxLabel === undefined ? {} : { selinuxLabel };
}

function persistentSpec(
  { driverName, volumeHandle }: VolumeRecord,
  { name, mode }: { name: string | undefined; mode: FoundVolume["mode"] },
): VolumeSpec {
  return {
    kind: "persistent",
    readOnly: false,
    migrated: "none",
    volume: {
      metadata: name === undefined ? {} : { name },
      spec: { volumeMode: mode, csi: { driver: driverName, volumeHandle } },
    },
  };
}

/** A published volume is nearly always a bind of its staging directory, and that one has a record of its own (FIX 13). */
async function byMount(
  { host, paths }: CsiContext,
  { path, specName }: { path: string; specName: string },
): Promise<Reconstructed | undefined> {
  const table = await host.mounts.table();
  const base = `${paths.plugin(CSI_PLUGIN)}/`;
  for (const other of table.references(join(path, "mount"))) {
    if (!other.startsWith(base)) continue;
    const lookup = await readRecord(host.files, dirname(other));
    if (lookup.kind === "found") return fromRecord(lookup.record, { mode: "Filesystem", specName });
  }
  return undefined;
}

/** Every volume with a record below `plugins/`, whether or not a pod's directory names it (FIX 12). */
export async function findStaged(context: CsiContext): Promise<readonly StagedVolume[]> {
  const base = context.paths.plugin(CSI_PLUGIN);
  const drivers = (await directoriesOf(context.host.files, base)).filter((name) => name !== "volumeDevices");
  const staged = await Promise.all([
    ...drivers.map((driver) => stagedBelow(context, join(base, driver))),
    stagedBlocks(context, join(base, "volumeDevices")),
  ]);
  return staged.flat();
}

async function stagedBelow({ host, log }: CsiContext, directory: string): Promise<StagedVolume[]> {
  const found: StagedVolume[] = [];
  for (const name of await directoriesOf(host.files, directory)) {
    const lookup = await readRecord(host.files, join(directory, name));
    // A hash cannot be turned back into a handle: only people can help, and the mount table shows them what is there.
    if (lookup.kind === "corrupt")
      log.error("csi record of a staged volume unreadable", { path: lookup.path });
    if (lookup.kind !== "found") continue;
    found.push({
      volume: volumeOf(lookup.record),
      spec: persistentSpec(lookup.record, { name: undefined, mode: "Filesystem" }),
      mode: "Filesystem",
      path: join(directory, name, "globalmount"),
      ...labelled(lookup.record),
    });
  }
  return found;
}

async function stagedBlocks({ host, log }: CsiContext, base: string): Promise<StagedVolume[]> {
  const found: StagedVolume[] = [];
  for (const name of await directoriesOf(host.files, base)) {
    if (name === "staging" || name === "publish") continue;
    const lookup = await readRecord(host.files, join(base, name, "data"));
    if (lookup.kind === "corrupt")
      log.error("csi record of a block volume unreadable", { path: lookup.path });
    if (lookup.kind !== "found") continue;
    const spec = persistentSpec(lookup.record, { name: lookup.record.specVolID ?? name, mode: "Block" });
    found.push({ volume: volumeOf(lookup.record), spec, mode: "Block", path: join(base, name, "dev") });
  }
  return found;
}

function volumeOf({ driverName: driver, volumeHandle }: VolumeRecord) {
  return csiVolumeName({ driver, volumeHandle });
}

async function directoriesOf(files: HostFiles, path: string): Promise<string[]> {
  const entries = (await files.list(path)) ?? [];
  return entries.filter(({ kind }) => kind === "directory").map(({ name }) => name);
}
