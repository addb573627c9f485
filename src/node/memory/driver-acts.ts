import type { MemoryHost } from "./host.ts";

/** What the node service of a driver does on a machine in memory. Each may be repeated. */

/** Published from where it is staged, it is the same filesystem. */
export async function mountVolume(
  { files, mounts }: MemoryHost,
  path: string,
  volumeId: string,
  { staged = "" }: { readonly staged?: string } = {},
): Promise<void> {
  if (await mounts.isMountPoint(path)) return;
  await files.makeDirectories(path, 0o750);
  if (staged !== "" && (await mounts.isMountPoint(staged))) {
    await mounts.bind(staged, path, []);
    return;
  }
  await mounts.mount({ source: volumeId, target: path, type: "tmpfs", options: [] });
}

/** A published block volume is a device file at the target. */
export async function bindDevice(host: MemoryHost, path: string, volumeId: string): Promise<void> {
  const device = `/dev/${volumeId}`;
  if ((await host.files.stat(device)) === undefined) host.addDevice(device, 1 << 30);
  if (await host.mounts.isMountPoint(path)) return;
  await host.files.makeFile(path, 0o600);
  await host.mounts.bind(device, path, []);
}

export async function unmountVolume({ mounts }: MemoryHost, path: string): Promise<void> {
  if (await mounts.isMountPoint(path)) await mounts.unmount(path);
}
