import type { Kernel } from "./kernel.ts";
import type { Device } from "./tree.ts";

/**
 * A block device that a process has open: it stays what it is until it is closed, whoever detaches it, and what is
 * written goes there, whatever its name means by then.
 */
export interface OpenDevice {
  /** A name that is a number is that block of 4 KiB. Throws where the device cannot be written: EROFS, EIO. */
  write(name: string, text: string): void;
  read(name: string): string | undefined;
  close(): void;
}

/**
 * Opened by a path of the host it keeps the mount at that path busy, too; a container has a node of its own. A path
 * where a filesystem is mounted stands for the device that is on.
 */
export function openDeviceIn(
  { tree, loops }: Pick<Kernel, "tree" | "loops">,
  path: string,
  { inContainer = false } = {},
): OpenDevice {
  const place = tree.walk(path, { follow: true });
  const device = place?.inode?.device ?? deviceOf(loops.attached(), place?.mount.filesystem.deviceNumber);
  const disk = device?.disk;
  if (place === undefined || device === undefined || disk === undefined)
    throw new Error(`ENXIO: ${path} is no device, or nothing is attached there`);
  const mount = inContainer || place.mount.path !== place.path ? undefined : place.mount;
  device.openers++;
  if (mount !== undefined) mount.users++;
  let isOpen = true;
  return {
    write(name, text) {
      if (isReadonly(device)) throw new Error(`EROFS: ${path}`);
      if (disk.isBroken) throw new Error(`EIO: ${path}`);
      disk.blocks.set(name, text);
    },
    read: (name) => disk.blocks.get(name),
    close() {
      if (!isOpen) return;
      isOpen = false;
      device.openers--;
      if (mount !== undefined) mount.users--;
      loops.settle();
    },
  };
}

function deviceOf(devices: readonly Device[], deviceNumber: string | undefined): Device | undefined {
  return devices.find((device) => device.deviceNumber === deviceNumber);
}

/** A loop device over a file that was opened for reading. */
function isReadonly(device: Device): boolean {
  return "readonly" in device && device.readonly === true;
}
