import { HostError, type Host, type MountPoint } from "./host.ts";
import { createMountTable, isAtOrBelow } from "./mount-table.ts";

/**
 * A root directory that is reached by a symbolic link. Drivers have to be told the path that was configured, as a kubelet
 * tells it: in their containers the directory lies under that name and no other. The kernel knows it only by the real
 * one. So the table of mounts is read with the configured spelling, and every comparison with it holds.
 *
 * A link that leads elsewhere later would let the agent work on another directory than the one it took stock of: nothing
 * is answered about mounts from then on, and so nothing is mounted and nothing taken down.
 */
export async function spellRoot(host: Host, root: string): Promise<Host> {
  const real = await host.files.realPath(root);
  if (real === undefined) throw new HostError("NotFound", `the root directory ${root} leads nowhere`);
  if (real === root) return host;

  async function refuseOther(): Promise<void> {
    const now = await host.files.realPath(root);
    if (now === real) return;
    const where = now ?? "nowhere";
    throw new HostError(
      "Failed",
      `the root directory ${root} led to ${real} when the agent started and leads to ${where} now; put the link back or restart the agent`,
    );
  }

  const respell = (point: MountPoint): MountPoint =>
    isAtOrBelow(point.path, real) ? { ...point, path: `${root}${point.path.slice(real.length)}` } : point;
  const { mounts } = host;
  return {
    ...host,
    mounts: {
      ...mounts,
      async table() {
        await refuseOther();
        return createMountTable((await mounts.table()).points.map(respell));
      },
      async isMountPoint(path) {
        await refuseOther();
        return mounts.isMountPoint(path);
      },
    },
  };
}
