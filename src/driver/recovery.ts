import type { Context } from "./context.ts";
import { detachVerified, deviceOf, isDeviceNode } from "./devices.ts";
import { removeGroup } from "./groups.ts";
import type { LoopDevice, Mount } from "./host.ts";
import { removeTarget } from "./publish.ts";
import {
  ID,
  LETTING_GO,
  type NodeRecord,
  type SnapshotRecord,
  type Table,
  type VolumeRecord,
} from "./records.ts";
import { removeSnapshot } from "./snapshots.ts";
import { dropSpares } from "./spares.ts";
import { forgetUnlessStaged, tearDown } from "./stage.ts";
import { removeVolume } from "./volumes.ts";

/**
 * What a start does before the socket opens: intents that were cut off are finished or undone, records are compared
 * with the kernel, frozen filesystems thaw. One object that cannot be recovered is logged and left for the next
 * call on it; it stops nobody else's.
 */
export async function recover(context: Context): Promise<void> {
  const { settings, host, paths } = context;
  await makeLayout(context);
  for (const name of await host.files.list(paths.tmp)) await host.files.removeFile(`${paths.tmp}/${name}`);
  await context.reserve.open();
  if (settings.serves !== "node") await recoverPool(context);
  if (settings.serves !== "controller") await recoverNode(context);
}

async function makeLayout({ host, paths }: Context): Promise<void> {
  const { root, volumes, snapshots, groups, nodes, node, ephemerals, ephemeral, tmp } = paths;
  for (const path of [
    root,
    volumes,
    snapshots,
    groups,
    nodes,
    node,
    ephemerals,
    ephemeral,
    `${root}/tmp`,
    tmp,
  ]) {
    await host.files.makeDirectory(path, 0o700);
  }
}

async function recoverPool(context: Context): Promise<void> {
  const { volumes, snapshots, groups, paths } = context;
  for (const table of [volumes, snapshots, groups]) await table.load();
  for (const { id, phase } of groups.all()) {
    if (phase !== "ready") await isolated(context, id, () => removeGroup(context, id));
  }
  for (const { id, phase } of snapshots.all()) {
    if (phase !== "ready") await isolated(context, id, () => removeSnapshot(context, id));
  }
  await recoverVolumes(context, volumes);
  await removeEmpty(context, paths.volumes, volumes);
  await removeEmpty(context, paths.snapshots, snapshots);
  await thawAll(context);
}

async function recoverVolumes(context: Context, volumes: Table<VolumeRecord>): Promise<void> {
  for (const record of volumes.all()) {
    if (record.phase === "ready") continue;
    await isolated(context, record.id, async () => {
      const isComplete = record.phase === "creating" && (await hasImage(context, record.id));
      if (isComplete) await volumes.put({ ...record, phase: "ready" }, LETTING_GO);
      else await removeVolume(context, record.id);
    });
  }
}

/** Images get their final name by a rename after the last byte: there means complete. */
async function hasImage({ host, paths }: Context, id: string): Promise<boolean> {
  return (await host.files.stat(paths.volumeImage(id)))?.kind === "file";
}

/** Made just before a kill, or emptied just before one. Whatever holds anything is damaged, and kept. */
async function removeEmpty(
  context: Context,
  directory: string,
  table: Table<VolumeRecord> | Table<SnapshotRecord>,
): Promise<void> {
  const { files } = context.host;
  for (const name of await files.list(directory)) {
    if (!ID.test(name) || table.get(name) !== undefined || table.damaged().includes(name)) continue;
    await isolated(context, name, async () => {
      await files.removeDirectory(`${directory}/${name}/mount`);
      await files.removeDirectory(`${directory}/${name}`);
    });
  }
}

async function thawAll(context: Context): Promise<void> {
  const { volumes } = context;
  for (const id of [...volumes.all().map((record) => record.id), ...volumes.damaged()])
    await isolated(context, id, () => thaw(context, id));
}

async function thaw(context: Context, id: string): Promise<void> {
  const device = await deviceOf(context, context.paths.volumeImage(id));
  if (device === undefined) return;
  const mount = (await context.host.mounts.list()).find(
    ({ deviceNumber }) => deviceNumber === device.deviceNumber,
  );
  if (mount !== undefined) await context.host.mounts.thaw(mount.path);
}

async function recoverNode(context: Context): Promise<void> {
  const { staged, ephemerals, paths, host } = context;
  await staged.load();
  await ephemerals.load();
  for (const { id } of staged.all()) await isolated(context, id, () => recoverStaged(context, id));
  await recoverVolumes(context, ephemerals);
  await removeEmpty(context, paths.ephemeral, ephemerals);
  for (const id of [...(await host.files.list(paths.volumes)), ...(await host.files.list(paths.ephemeral))]) {
    if (ID.test(id) && staged.get(id) === undefined)
      await isolated(context, id, () => recoverUnrecorded(context, id));
  }
}

/** Under its lock: the controller and other nodes may be at work on the same volume. */
async function recoverStaged(context: Context, id: string): Promise<void> {
  const { staged, locks } = context;
  await locks.hold([{ key: `volume/${id}` }], async () => {
    for (const target of staged.get(id)?.targets ?? []) {
      const record = staged.get(id);
      if (target.phase !== "published" && record !== undefined) await removeTarget(context, record, target);
    }
    const record = staged.get(id);
    if (record !== undefined && record.phase !== "staged") await tearDown(context, record);
    else if (record !== undefined) {
      const device = await deviceOf(context, context.paths.volumeImage(id));
      if (device !== undefined) await dropSpares(context, record, device);
      await forgetUnlessStaged(context, id);
    }
  });
}

/** A device of ours that no record knows: unused it goes; in use, it is adopted and can be unpublished and unstaged. */
async function recoverUnrecorded(context: Context, id: string): Promise<void> {
  const { paths, log, staged, locks } = context;
  if ((await deviceOf(context, paths.volumeImage(id))) === undefined) return;
  await locks.hold([{ key: `volume/${id}` }], async () => {
    const device = await deviceOf(context, paths.volumeImage(id));
    if (device === undefined || (await context.stagedAnywhere(id)).length > 0) return;
    const found = await usesOf(context, device);
    if (found.mounts.length + found.nodes.length === 0) {
      await detachVerified(context, device);
      log.info("unused device detached", { volume: id, device: device.path });
      return;
    }
    await staged.put(adopted(context, id, found), LETTING_GO);
    const uses = [...found.mounts, ...found.nodes].map(({ path }) => path);
    log.warn("unrecorded mounts adopted", { volume: id, paths: uses });
  });
}

interface Uses {
  /** Of the filesystem on the device, in the order they were made: the first is the staging path. */
  readonly mounts: readonly Mount[];
  /** Of the device node, bound over a file; the kernel lists them as mounts of /dev. */
  readonly nodes: readonly Mount[];
}

async function usesOf(context: Context, device: LoopDevice): Promise<Uses> {
  const all = await context.host.mounts.list();
  const name = device.path.slice(device.path.lastIndexOf("/"));
  const nodes: Mount[] = [];
  for (const mount of all)
    if (mount.root.endsWith(name) && (await isDeviceNode(context, mount.path, [device]))) nodes.push(mount);
  return { mounts: all.filter(({ deviceNumber }) => deviceNumber === device.deviceNumber), nodes };
}

function adopted({ settings }: Context, id: string, { mounts, nodes }: Uses): NodeRecord {
  const accessType = mounts.length > 0 ? ("mount" as const) : ("block" as const);
  const capability = { accessType, mode: 1, fsType: "", mountFlags: [] };
  const [staging, ...bound] = mounts;
  return {
    id,
    nodeId: settings.nodeId,
    phase: "staged",
    stagingPath: staging?.path ?? "",
    capability,
    adopted: true,
    targets: [...bound, ...nodes].map(({ path, readonly }) => ({
      path,
      phase: "published",
      readonly,
      capability,
    })),
  };
}

async function isolated(context: Context, id: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    context.log.error("recovery failed", {
      object: id,
      error,
      next: "tried again by the next call or start",
    });
  }
}
