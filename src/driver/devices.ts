import type { Context } from "./context.ts";
import { failedPrecondition } from "./errors.ts";
import { goneIdentity, HostError, type LoopDevice, type Mount } from "./host.ts";
import type { NodeRecord } from "./records.ts";

/**
 * Our devices and mounts in the kernel's tables. A device is the inode behind it and its `diskseq`, never its number:
 * loop3 may be another volume's by the time it is used. A mounted filesystem keeps its device; a device node that is
 * bound over a target, copied into a container or only remembered does not, and is looked at before each use.
 */

/** The loop device of an image; other devices of the machine are not ours to touch. Of two the one that stays. */
export async function deviceOf({ host }: Context, image: string): Promise<LoopDevice | undefined> {
  const file = await host.files.stat(image);
  return deviceWith(await host.loops.list(), file?.identity ?? goneIdentity(image));
}

/**
 * To let go of: also one that is left of a file which was deleted or replaced under it. Not to be used. Where there seems
 * to be none it is asked twice, because what follows forgets the volume.
 */
export async function leftDeviceOf(context: Context, image: string): Promise<LoopDevice | undefined> {
  const device = await deviceOf(context, image);
  if (device !== undefined) return device;
  const left = deviceWith(await context.host.loops.list(), goneIdentity(image));
  return left ?? deviceOf(context, image);
}

function deviceWith(devices: readonly LoopDevice[], wanted: string): LoopDevice | undefined {
  const found = devices.filter(({ backing }) => backing === wanted);
  return found.find(({ autoclear }) => !autoclear) ?? found[0];
}

/** Is it the device that the volume was staged with? Old and adopted records do not say which it was. */
export function isDeviceOf({ device: staged }: NodeRecord, device: LoopDevice): boolean {
  return staged === undefined || (staged.diskseq === device.diskseq && staged.path === device.path);
}

/** Takes the mark off a device that somebody asked to be detached while it is ours: a staged one stays until unstaged. */
export async function keepDevice(context: Context, record: NodeRecord): Promise<void> {
  const image = context.paths.volumeImage(record.id);
  const device = await deviceOf(context, image);
  if (device?.autoclear !== true || record.phase !== "staged") return;
  await context.host.loops.attach(image, {
    readonly: device.readonly,
    avoid: await boundDevices(context),
  });
}

/**
 * Does something with a device by its path, which names this device and no other meanwhile. One that is marked to be
 * detached, before or meanwhile, is refused: its path would outlive it.
 */
export async function usingDevice<T>(
  { host }: Context,
  device: LoopDevice,
  work: () => Promise<T>,
): Promise<T> {
  const release = await host.loops.pin(device);
  try {
    const result = await work();
    const now = (await host.loops.list()).find(({ path }) => path === device.path);
    if (now?.autoclear === false) return result;
    throw failedPrecondition(`${device.path} is about to be detached: somebody else let go of it; try again`);
  } finally {
    await release();
  }
}

/** Read-only devices stacked on a writable one: a read-only bind does not stop writes to a device node. */
export async function readonlyDevicesOf(
  { host }: Context,
  device: LoopDevice,
): Promise<readonly LoopDevice[]> {
  // On one that is read-only itself we stack none: those are others', as kubelet holds a raw volume by one.
  if (device.readonly) return [];
  const node = await host.files.stat(device.path);
  if (node === undefined) return [];
  return (await host.loops.list()).filter(({ backing, readonly }) => readonly && backing === node.identity);
}

/** The one for new targets. */
export async function readonlyDeviceOf(
  context: Context,
  device: LoopDevice,
): Promise<LoopDevice | undefined> {
  return (await readonlyDevicesOf(context, device)).find(({ autoclear }) => !autoclear);
}

/** A loop device's node, bound over a file: a name in the mount table that outlives the device. */
export function boundDevice({ root }: Mount): string | undefined {
  // Whatever /dev is, its own filesystem or a directory of another: a file of this name is bound over the path.
  // Its node may be gone from /dev since; what is bound is as good as before.
  const name = /(?:^|\/)(loop\d+)(?:\/\/deleted)?$/.exec(root)?.[1];
  return name === undefined ? undefined : `/dev/${name}`;
}

/** Devices that a target names by number: a new volume on one of these could be written by whoever has that target. */
export async function boundDevices({ host }: Context): Promise<ReadonlySet<string>> {
  return new Set((await host.mounts.list()).flatMap((mount) => boundDevice(mount) ?? []));
}

/** Layers at one path, lowest first. */
export async function mountsAt({ host }: Context, path: string): Promise<readonly Mount[]> {
  const resolved = await host.files.resolve(path);
  if (resolved === undefined) return [];
  return (await host.mounts.list()).filter((mount) => mount.path === resolved);
}

/** Is the uppermost layer at `path` this device's filesystem? */
export async function isMounted(
  context: Context,
  path: string,
  device: LoopDevice,
): Promise<Mount | undefined> {
  const top = (await mountsAt(context, path)).at(-1);
  return top?.deviceNumber === device.deviceNumber ? top : undefined;
}

/** Is `path` one of these device nodes, bound there? */
export async function isDeviceNode(
  { host }: Context,
  path: string,
  devices: readonly (LoopDevice | undefined)[],
): Promise<boolean> {
  const found = await host.files.stat(path);
  return (
    found?.kind === "block" &&
    devices.some((device) => device !== undefined && device.deviceNumber === found.deviceNumber)
  );
}

/** Takes off every layer at `path` that is ours; a foreign one stops it. At most as many rounds as layers. */
export async function unmountOurs(
  context: Context,
  path: string,
  isOurs: (top: Mount) => boolean,
): Promise<void> {
  const resolved = await context.host.files.resolve(path);
  if (resolved === undefined) return;
  const layers = await mountsAt(context, path);
  for (let left = layers.length; left > 0; left--) {
    const top = (await mountsAt(context, path)).at(-1);
    if (top === undefined || !isOurs(top)) return;
    await context.host.mounts.unmount(resolved);
  }
}

export async function detachVerified({ host }: Context, device: LoopDevice): Promise<void> {
  await host.loops.detach(device);
  const still = (await host.loops.list()).some(
    ({ path, diskseq, backing }) =>
      path === device.path && diskseq === device.diskseq && backing === device.backing,
  );
  if (still) throw new HostError("Busy", `${device.path} still holds its file: something uses the device`);
}
