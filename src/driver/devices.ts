import type { Context } from "./context.ts";
import { goneIdentity, HostError, type LoopDevice, type Mount } from "./host.ts";

/** Our devices and mounts in the kernel's tables. Matched by identity, never by a name that may have been reused. */

/** The loop device of an image; other devices of the machine are not ours to touch. */
export async function deviceOf({ host }: Context, image: string): Promise<LoopDevice | undefined> {
  const file = await host.files.stat(image);
  const wanted = file?.identity ?? goneIdentity(image);
  return (await host.loops.list()).find(({ backing }) => backing === wanted);
}

/** The read-only device stacked on a writable one: a read-only bind does not stop writes to a device node. */
export async function readonlyDeviceOf(
  { host }: Context,
  device: LoopDevice,
): Promise<LoopDevice | undefined> {
  const node = await host.files.stat(device.path);
  if (node === undefined) return undefined;
  return (await host.loops.list()).find(({ backing }) => backing === node.identity);
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
  isOurs: (top: Mount) => Promise<boolean>,
): Promise<void> {
  const resolved = await context.host.files.resolve(path);
  if (resolved === undefined) return;
  const layers = await mountsAt(context, path);
  for (let left = layers.length; left > 0; left--) {
    const top = (await mountsAt(context, path)).at(-1);
    if (top === undefined || !(await isOurs(top))) return;
    await context.host.mounts.unmount(resolved);
  }
}

export async function detachVerified({ host }: Context, device: LoopDevice): Promise<void> {
  await host.loops.detach(device.path);
  const still = (await host.loops.list()).some(
    ({ path, backing }) => path === device.path && backing === device.backing,
  );
  if (still) throw new HostError("Busy", `${device.path} still holds its file: something uses the device`);
}
