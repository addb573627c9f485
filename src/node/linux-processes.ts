import type { HostProcesses, NamespaceMount, ProcessScan } from "./host-processes.ts";
import type { Probes } from "./linux-probes.ts";
import type { Scanned } from "./linux-processes-child.ts";
import { parseMountInfo } from "./mount-table.ts";

/**
 * Looks at the processes of this machine in a probe child, which can be killed: what hangs in the kernel there holds nothing
 * here. 2,300 processes in 53 namespaces take 0.1 s, with their open files 0.35 s.
 */
export function createLinuxProcesses({ probes }: { readonly probes: Probes }): HostProcesses {
  return {
    async scan(request) {
      const doing = "look at the processes of this machine";
      return toScan(
        (await probes.ask({ action: "processes", path: "/proc", args: { request }, doing })) as Scanned,
      );
    },
  };
}

function toScan({ namespaces, pods, openers, users }: Scanned): ProcessScan {
  return {
    namespaces: namespaces.map(({ lines, ...namespace }) => ({
      ...namespace,
      mounts: lines.flatMap((line) => toMount(line) ?? []),
    })),
    pods,
    openers,
    users,
  };
}

/** `36 35 7:3 / /mnt rw shared:1 master:2 - ext4 /dev/loop3 rw`. */
function toMount(line: string): NamespaceMount | undefined {
  const [point] = parseMountInfo(line);
  if (!point) return undefined;
  const [id, parentId] = line.split(" ", 2).map(Number);
  const optional = line.slice(0, line.indexOf(" - "));
  const group = (name: string) => new RegExp(` ${name}:(\\d+)`).exec(optional)?.[1];
  const [peers, master] = [group("shared"), group("master")];
  const { deviceNumber, root, path, source } = point;
  return {
    id: id ?? 0,
    parentId: parentId ?? 0,
    deviceNumber,
    root,
    path,
    source,
    ...(peers !== undefined && { peers: Number(peers) }),
    ...(master !== undefined && { master: Number(master) }),
  };
}
