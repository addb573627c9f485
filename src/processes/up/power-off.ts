import type { Logger } from "../../base/log.ts";
import type { Host } from "../../driver/host.ts";
import { devicesOfPool } from "../../driver/pool-devices.ts";

/**
 * What happens to mounts and devices when a machine is switched off: all are gone, what was written is on the disk, and
 * records of what was mounted where stay behind. The next start finds itself after a reboot, which every part has to bear
 * anyway, and a person who ended `mooring up` finds nothing of it in the mount table.
 *
 * What is busy (a shell inside a volume) stays and is answered; the next start takes it over.
 */
export async function powerOff(
  { host, log }: { readonly host: Host; readonly log: Logger },
  { nodesDir, stateDir }: { readonly nodesDir: string; readonly stateDir: string },
): Promise<readonly string[]> {
  const busy: string[] = [];

  async function attempt(path: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      log.warn("left as it is; the next start takes it over", { path, error });
      busy.push(path);
    }
  }

  const devices = await devicesOfPool(host, stateDir);
  // These hold the files that are mounted over with a raw block volume.
  for (const device of devices.stacked) await attempt(device.path, () => host.loops.detach(device));
  const roots = await Promise.all([nodesDir, stateDir].map((path) => host.files.resolve(path)));
  const isOurs = (path: string) => roots.some((root) => root !== undefined && path.startsWith(`${root}/`));
  const mounts = (await host.mounts.list()).filter(({ path }) => isOurs(path));
  // The last mounted first: it may be inside an earlier one, or over it.
  for (const { path } of mounts.reverse()) await attempt(path, () => host.mounts.unmount(path));
  for (const device of devices.images) await attempt(device.path, () => host.loops.detach(device));
  return busy;
}
