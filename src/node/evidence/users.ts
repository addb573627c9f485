import type { Context } from "../context.ts";
import { toVolumeError, VolumeError } from "../errors.ts";
import type { HostProcess } from "../host-processes.ts";
import { isAtOrBelow } from "../mount-table.ts";

/**
 * What could not be unmounted, with who keeps it busy: a shell that works in it, a service that has a file of it open.
 * They do not have the volume as a container does, so nobody waits for them beforehand; but the kernel refuses, and says
 * only that it is busy.
 */
export async function withUsers(
  { host, log }: Pick<Context, "host" | "log">,
  { paths, devicePath }: { readonly paths: readonly string[]; readonly devicePath: string },
  error: unknown,
): Promise<VolumeError> {
  const failure = toVolumeError(error);
  const users = await usersOf(host, paths, devicePath).catch((reason: unknown) => {
    log.warn("cannot tell who keeps a volume busy", { paths, error: reason });
    return [];
  });
  if (users.length === 0) return failure;
  const { outcome, kind, blockedBy, late, message } = failure;
  return new VolumeError(
    outcome,
    `${message}; ${users.join(", ")}: it can be unmounted once that has ended`,
    { cause: error, kind, blockedBy, late },
  );
}

async function usersOf(
  host: Context["host"],
  paths: readonly string[],
  devicePath: string,
): Promise<readonly string[]> {
  const table = await host.mounts.table();
  const mountPoints = paths.filter(
    (path) => path !== "" && table.points.some((one) => isAtOrBelow(one.path, path)),
  );
  const device = devicePath.startsWith("/") ? await host.files.statTarget(devicePath) : undefined;
  const devices = device?.kind === "block" ? [device.deviceNumber ?? ""] : [];
  if (mountPoints.length === 0 && devices.length === 0) return [];
  const { users, openers } = await host.processes.scan({ filesystems: [], devices, mountPoints });
  return [
    ...users.map((user) => `${nameOf(user)} ${user.how}`),
    ...openers.map((opener) => `${nameOf(opener)} has device ${devicePath} open`),
  ].slice(0, 3);
}

function nameOf({ pid, command }: HostProcess): string {
  return `process ${pid} (${command})`;
}
