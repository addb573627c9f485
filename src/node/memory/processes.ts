import type { HostProcesses, MountNamespace, NamespaceMount, ProcessScan } from "../host-processes.ts";
import type { Mounted, Tree } from "./tree.ts";

/** A container's process on the simulated machine. */
export interface SimProcess {
  readonly pid: number;
  readonly command: string;
  readonly podUid?: string;
  /** Mounts of its own in a namespace of its own; none: it lives in the host's. */
  readonly mounts: readonly NamespaceMount[];
  /** `major:minor` of block devices that it has open. */
  readonly opens: readonly string[];
}

export interface SimProcessSketch {
  readonly command?: string;
  /** Whose control group it is in; where left out the kernel says nothing of a pod. */
  readonly podUid?: string;
  /** Directories or files of the host which it got as mounts of its own, as a container gets its volumes. */
  readonly binds?: readonly string[];
  /** Block devices that it has open. */
  readonly opens?: readonly string[];
}

/** The root of a container is a filesystem that hears of no mount of the host. */
const CONTAINER_ROOT: NamespaceMount = {
  id: 1,
  parentId: 0,
  deviceNumber: "0:1",
  root: "/",
  path: "/",
  source: "overlay",
};

/** Processes of one simulated machine: they outlive the agent, and end when a test says so or the machine reboots. */
export class Processes {
  readonly all = new Map<number, SimProcess>();
  #lastPid = 100;
  readonly #tree: Tree;

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  start({ command = "app", podUid, binds = [], opens = [] }: SimProcessSketch): number {
    const pid = ++this.#lastPid;
    const mounts = binds.map((path, at) => this.#bind(path, at));
    this.all.set(pid, {
      pid,
      command,
      ...(podUid !== undefined && { podUid }),
      mounts: mounts.length === 0 ? [] : [CONTAINER_ROOT, ...mounts],
      opens: opens.map((path) => this.#deviceNumber(path)),
    });
    return pid;
  }

  #bind(path: string, at: number): NamespaceMount {
    const place = this.#tree.walk(path, { follow: true });
    if (place?.inode === undefined) throw new Error(`a container cannot get ${path}: it is not there`);
    const { mount } = place;
    const below =
      place.path === mount.path ? "" : place.path.slice(mount.path === "/" ? 0 : mount.path.length);
    return {
      id: at + 2,
      parentId: CONTAINER_ROOT.id,
      deviceNumber: mount.filesystem.deviceNumber,
      root: `${mount.rootPath === "/" ? "" : mount.rootPath}${below}` || "/",
      path: `/data${at}`,
      source: mount.source,
    };
  }

  #deviceNumber(path: string): string {
    const device = this.#tree.walk(path, { follow: true })?.inode?.device;
    if (device === undefined) throw new Error(`a container cannot open ${path}: it is no device`);
    return device.deviceNumber;
  }
}

export function createMemoryProcesses(tree: Tree, processes: Processes): HostProcesses {
  return {
    async scan({ filesystems, devices }): Promise<ProcessScan> {
      const all = [...processes.all.values()];
      const wanted = (mounts: readonly NamespaceMount[]) =>
        mounts.filter((mount) => mount === CONTAINER_ROOT || filesystems.includes(mount.deviceNumber));
      const named = ({ pid, command, podUid }: SimProcess) => ({
        pid,
        command,
        ...(podUid !== undefined && { podUid }),
      });
      const own: MountNamespace = {
        name: "mnt:[1]",
        own: true,
        processes: [{ pid: 1, command: "init" }],
        mounts: wanted(tree.mounts.map(toMount)),
      };
      const others = all
        .filter(({ mounts }) => mounts.length > 0)
        .map((one): MountNamespace => {
          return {
            name: `mnt:[${one.pid}]`,
            own: false,
            processes: [named(one)],
            mounts: wanted(one.mounts),
          };
        });
      return {
        namespaces: [own, ...others],
        pods: all.flatMap((one) => (one.podUid === undefined ? [] : [{ ...named(one), podUid: one.podUid }])),
        openers: all.flatMap((one) =>
          one.opens
            .filter((device) => devices.includes(device))
            .map((deviceNumber) => ({ ...named(one), deviceNumber })),
        ),
      };
    },
  };
}

function toMount({ path, filesystem, rootPath, source }: Mounted, at: number): NamespaceMount {
  const { deviceNumber } = filesystem;
  return { id: at + 1, parentId: 0, deviceNumber, root: rootPath, path, source };
}
