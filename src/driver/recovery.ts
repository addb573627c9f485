import type { Context } from "./context.ts";
import { detachVerified, deviceOf, readonlyDeviceOf } from "./devices.ts";
import { removeGroup } from "./groups.ts";
import type { Mount } from "./host.ts";
import { removeTarget } from "./publish.ts";
import { ID, type NodeRecord } from "./records.ts";
import { removeSnapshot } from "./snapshots.ts";
import { tearDown } from "./stage.ts";
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
  if (settings.serves !== "node") await recoverPool(context);
  if (settings.serves !== "controller") await recoverNode(context);
}

async function makeLayout({ host, paths }: Context): Promise<void> {
  const { root, volumes, snapshots, groups, nodes, node, ephemeral, tmp } = paths;
  for (const path of [root, volumes, snapshots, groups, nodes, node, ephemeral, `${root}/tmp`, tmp]) {
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
  for (const record of volumes.all()) {
    const complete = record.phase === "creating" && (await hasImage(context, record.id));
    if (complete) await isolated(context, record.id, () => volumes.put({ ...record, phase: "ready" }));
    else if (record.phase !== "ready")
      await isolated(context, record.id, () => removeVolume(context, record.id));
  }
  await removeStrangers(
    context,
    paths.volumes,
    (id) => volumes.get(id) !== undefined || volumes.damaged().includes(id),
  );
  await removeStrangers(
    context,
    paths.snapshots,
    (id) => snapshots.get(id) !== undefined || snapshots.damaged().includes(id),
  );
  await thawAll(context);
}

/** Images get their final name by a rename after the last byte: there means complete. */
async function hasImage({ host, paths }: Context, id: string): Promise<boolean> {
  return (await host.files.stat(paths.volumeImage(id)))?.kind === "file";
}

/** Directories of ours without a record: made just before a kill, or emptied just before one. */
async function removeStrangers(
  context: Context,
  directory: string,
  isKnown: (id: string) => boolean,
): Promise<void> {
  const { files } = context.host;
  for (const name of await files.list(directory)) {
    if (!ID.test(name) || isKnown(name)) continue;
    await isolated(context, name, async () => {
      await files.removeFile(`${directory}/${name}/image.raw`);
      await files.removeDirectory(`${directory}/${name}`);
    });
  }
}

async function thawAll(context: Context): Promise<void> {
  for (const { id } of context.volumes.all()) {
    const device = await deviceOf(context, context.paths.volumeImage(id));
    if (device === undefined) continue;
    const mount = (await context.host.mounts.list()).find(
      ({ deviceNumber }) => deviceNumber === device.deviceNumber,
    );
    if (mount !== undefined) await isolated(context, id, () => context.host.mounts.thaw(mount.path));
  }
}

async function recoverNode(context: Context): Promise<void> {
  const { staged } = context;
  await staged.load();
  for (const { id } of staged.all()) await isolated(context, id, () => recoverStaged(context, id));
  for (const id of await context.host.files.list(context.paths.volumes)) {
    if (ID.test(id) && staged.get(id) === undefined)
      await isolated(context, id, () => recoverUnrecorded(context, id));
  }
}

async function recoverStaged(context: Context, id: string): Promise<void> {
  const { staged } = context;
  for (const target of staged.get(id)?.targets ?? []) {
    const record = staged.get(id);
    if (target.phase !== "published" && record !== undefined) await removeTarget(context, record, target);
  }
  const record = staged.get(id);
  if (record !== undefined && record.phase !== "staged") await tearDown(context, record);
  else if (record !== undefined) await dropSpare(context, record);
}

/** A read-only device that no target uses any more. */
async function dropSpare(context: Context, record: NodeRecord): Promise<void> {
  const device = await deviceOf(context, context.paths.volumeImage(record.id));
  const spare = device === undefined ? undefined : await readonlyDeviceOf(context, device);
  if (spare !== undefined && record.targets.every((target) => !target.readonly))
    await detachVerified(context, spare);
}

/** A device of ours that no record knows: unused it goes; with mounts on it, it is adopted and can be unstaged. */
async function recoverUnrecorded(context: Context, id: string): Promise<void> {
  const { host, paths, log, staged } = context;
  const device = await deviceOf(context, paths.volumeImage(id));
  if (device === undefined || (await context.stagedAnywhere(id)).length > 0) return;
  const mounts = (await host.mounts.list()).filter(
    ({ deviceNumber }) => deviceNumber === device.deviceNumber,
  );
  const [staging, ...others] = mounts;
  if (staging === undefined) {
    await detachVerified(context, device);
    log.info("unused device detached", { volume: id, device: device.path });
    return;
  }
  await staged.put(adopted(context, id, [staging, ...others]));
  log.warn("unrecorded mounts adopted", { volume: id, paths: mounts.map(({ path }) => path) });
}

function adopted({ settings }: Context, id: string, mounts: readonly Mount[]): NodeRecord {
  const capability = { accessType: "mount" as const, mode: 1, fsType: "", mountFlags: [] };
  const [staging, ...targets] = mounts;
  return {
    id,
    nodeId: settings.nodeId,
    phase: "staged",
    stagingPath: staging?.path ?? "",
    capability,
    adopted: true,
    targets: targets.map(({ path, readonly }) => ({ path, phase: "published", readonly, capability })),
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
