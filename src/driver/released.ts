import { boundDevice, leftDeviceOf, mountsAt } from "./devices.ts";
import type { Context } from "./context.ts";
import { failedPrecondition, quoted } from "./errors.ts";
import type { LoopDevice, Mount } from "./host.ts";
import { samePlace } from "./paths.ts";
import { devicesOfPool } from "./pool-devices.ts";
import { ID, type NodeRecord } from "./records.ts";

/**
 * What OK of NodeUnpublishVolume and NodeUnstageVolume means: nothing of this pool is at the path any more, whoever put
 * it there. A node service that was started under another name knows none of its predecessor's records, and the
 * caller would take its OK for leave to attach the volume elsewhere.
 */
export async function checkLeft(context: Context, id: string, path: string): Promise<void> {
  const other = await otherNodeAt(context, id, path);
  if (other !== undefined) {
    throw failedPrecondition(
      `volume ${quoted(id)} is at this path by the records of node ${quoted(other.nodeId)}, and this is node ` +
        `${quoted(context.settings.nodeId)}: call that node's service, or start this one with --nodeid ${quoted(other.nodeId)}`,
    );
  }
  const layers = await mountsAt(context, path);
  if (layers.length === 0 || (await isOthers(context, id, path))) return;
  const ours = await devicesHere(context, id);
  const left = layers.find((layer) => isOf(ours, layer));
  if (left === undefined) return;
  throw failedPrecondition(
    `a device of this pool is still mounted at the path, and no record of node ${quoted(context.settings.nodeId)} ` +
      `names it: restart this driver, which adopts what it finds mounted, and call again`,
  );
}

async function otherNodeAt(context: Context, id: string, path: string): Promise<NodeRecord | undefined> {
  if (!ID.test(id)) return undefined;
  for (const record of await context.stagedAnywhere(id)) {
    if (record.nodeId === context.settings.nodeId) continue;
    const known = [record.stagingPath, ...record.targets.map((target) => target.path)];
    if ((await samePlace(context, known, path)) !== undefined) return record;
  }
  return undefined;
}

/** What is mounted there is another volume of this node: about this one nothing is left to do. */
async function isOthers(context: Context, id: string, path: string): Promise<boolean> {
  for (const record of context.staged.all()) {
    const known = [record.stagingPath, ...record.targets.map((target) => target.path)];
    if (record.id !== id && (await samePlace(context, known, path)) !== undefined) return true;
  }
  return false;
}

async function devicesHere(context: Context, id: string): Promise<readonly LoopDevice[]> {
  const { images, stacked } = await devicesOfPool(context.host, context.paths.root);
  const own = ID.test(id) ? await leftDeviceOf(context, context.paths.volumeImage(id)) : undefined;
  return [...images, ...stacked, ...(own === undefined ? [] : [own])];
}

/** A bound loop device's node counts whatever it names now: where we are asked to unpublish, only a driver binds one. */
function isOf(devices: readonly LoopDevice[], layer: Mount): boolean {
  if (boundDevice(layer) !== undefined) return true;
  return devices.some(({ deviceNumber }) => deviceNumber === layer.deviceNumber);
}
