import type { Logger } from "../../base/log.ts";
import { VolumeError } from "../errors.ts";
import type { Host, MountRequest } from "../host.ts";
import type { Paths } from "../paths.ts";
import { createDiskRecords, diskAt, mountedDisk, verifyDisk } from "./disk-identity.ts";
import { hostStep } from "./failures.ts";
import { mountOnce } from "./mount-point.ts";

interface Deps {
  readonly host: Host;
  readonly paths: Paths;
  readonly log: Logger;
}

/**
 * Mounts the disk that a path leads to now, formatted where it is blank and was never mounted here. The disk is recorded
 * for the directory first; where another one is recorded or mounted there, nothing is done.
 */
export async function mountDisk(
  deps: Deps,
  request: MountRequest,
  { needsWwid = false }: { readonly needsWwid?: boolean } = {},
): Promise<void> {
  const { host } = deps;
  const { source, target } = request;
  const records = createDiskRecords(deps);
  const { disk, before } = await hostStep(`mount ${source}`, () =>
    claimDisk(deps, { path: source, directory: target, needsWwid }),
  );
  const mounted = await hostStep(target, () => mountedDisk(host, target));
  if (mounted !== undefined && mounted.wwid !== disk.wwid)
    throw new VolumeError(
      "final",
      `${target}: disk "${mounted.wwid}" is mounted there, not "${disk.wwid}"; unmount it first`,
    );
  const what = `mount ${disk.devicePath}`;
  try {
    await mountOnce(deps, { target, what }, async () => {
      await verifyDisk(host, disk, what);
      // It was mounted here before, so it has a filesystem: one that cannot be seen is not replaced.
      await host.mounts.formatAndMount({
        ...request,
        source: disk.devicePath,
        mayFormat: before !== "mounted",
      });
    });
    await hostStep(what, () => records.mounted(target, disk));
  } catch (error) {
    // Nothing of it is here, and nobody would come to take the record away.
    if (before === "new" && error instanceof VolumeError && error.outcome !== "uncertain")
      await records.remove(target).catch(() => undefined);
    throw error;
  }
}

/** The disk behind a path of now, recorded for this directory before it is used. */
export async function claimDisk(
  deps: Deps,
  {
    path,
    directory,
    needsWwid,
  }: { readonly path: string; readonly directory: string; readonly needsWwid: boolean },
) {
  const disk = await diskAt(deps.host, path);
  if (disk === undefined) throw new VolumeError("transient", `no device ${path}; it is looked for again`);
  if (needsWwid && disk.wwid === "")
    throw new VolumeError("final", `${disk.devicePath}: the disk has no WWID, so nobody could know it again`);
  return { disk, before: await createDiskRecords(deps).claim(directory, disk) };
}

/** The filesystem at a path, on the device that the kernel has mounted there. */
export async function growMounted(host: Host, path: string): Promise<void> {
  const disk = await mountedDisk(host, path);
  if (disk === undefined) throw new VolumeError("final", `grow ${path}: no disk is mounted there`);
  await host.devices.growFilesystem(disk.devicePath, path);
}
