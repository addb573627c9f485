import type { HostProcesses, MountNamespace, NamespaceMount, ProcessScan } from "../host-processes.ts";
import { isAtOrBelow } from "../mount-table.ts";
import type { Loops } from "./loops.ts";
import type { Device, Filesystem, Mounted, Place, Tree } from "./tree.ts";

/** A container's process on the simulated machine. */
export interface SimProcess {
  readonly pid: number;
  readonly command: string;
  readonly podUid?: string;
  /** Mounts of its own in a namespace of its own; none: it lives in the host's. */
  readonly mounts: readonly NamespaceMount[];
  /** `major:minor` of block devices that it has open. */
  readonly opens: readonly string[];
  readonly worksIn: string | undefined;
  /** Paths of the host by which it got what it has. */
  readonly paths: readonly string[];
  /** What it keeps until it ends: filesystems that are mounted in its namespace, open devices, a mount of the host. */
  readonly keeps: {
    readonly filesystems: readonly Filesystem[];
    readonly devices: readonly Device[];
    readonly mounts: readonly Mounted[];
  };
}

export interface SimProcessSketch {
  readonly command?: string;
  /** Whose control group it is in; where left out the kernel says nothing of a pod. */
  readonly podUid?: string;
  /** Directories or files of the host which it got as mounts of its own, as a container gets its volumes. */
  readonly binds?: readonly string[];
  /** Block devices that it has open. */
  readonly opens?: readonly string[];
  /** Its working directory on the host. */
  readonly worksIn?: string;
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
  readonly #loops: Loops;

  constructor(tree: Tree, loops: Loops) {
    this.#tree = tree;
    this.#loops = loops;
  }

  start({ command = "app", podUid, binds = [], opens = [], worksIn }: SimProcessSketch): number {
    const pid = ++this.#lastPid;
    const bound = binds.map((path) => this.#there(path));
    const devices = opens.map((path) => this.#device(path));
    const place = worksIn === undefined ? undefined : this.#tree.walk(worksIn, { follow: true });
    const started: SimProcess = {
      pid,
      command,
      ...(podUid !== undefined && { podUid }),
      mounts: bound.length === 0 ? [] : [CONTAINER_ROOT, ...bound.map(toContainerMount)],
      opens: devices.map(({ deviceNumber }) => deviceNumber),
      worksIn,
      paths: [...binds, ...opens, ...(worksIn === undefined ? [] : [worksIn])],
      keeps: {
        filesystems: bound.map(({ mount }) => mount.filesystem),
        devices,
        mounts: place === undefined ? [] : [place.mount],
      },
    };
    for (const filesystem of started.keeps.filesystems) this.#tree.use(filesystem);
    for (const device of devices) device.openers++;
    for (const mount of started.keeps.mounts) mount.users++;
    this.all.set(pid, started);
    return pid;
  }

  end(pid: number): void {
    const ended = this.all.get(pid);
    if (ended === undefined) return;
    this.all.delete(pid);
    const { filesystems, devices, mounts } = ended.keeps;
    for (const mount of mounts) mount.users--;
    for (const device of devices) device.openers--;
    for (const filesystem of filesystems) this.#tree.unuse(filesystem);
    this.#loops.settle();
  }

  #there(path: string): Place {
    const place = this.#tree.walk(path, { follow: true });
    if (place?.inode === undefined) throw new Error(`a container cannot get ${path}: it is not there`);
    return place;
  }

  #device(path: string): Device {
    const device = this.#tree.walk(path, { follow: true })?.inode?.device;
    if (device === undefined) throw new Error(`a container cannot open ${path}: it is no device`);
    return device;
  }
}

function toContainerMount({ path, mount }: Place, at: number): NamespaceMount {
  const below = path === mount.path ? "" : path.slice(mount.path === "/" ? 0 : mount.path.length);
  return {
    id: at + 2,
    parentId: CONTAINER_ROOT.id,
    deviceNumber: mount.filesystem.deviceNumber,
    root: `${mount.rootPath === "/" ? "" : mount.rootPath}${below}` || "/",
    path: `/data${at}`,
    source: mount.source,
  };
}

export function createMemoryProcesses(tree: Tree, processes: Processes): HostProcesses {
  return {
    async scan({ filesystems, devices, mountPoints = [] }): Promise<ProcessScan> {
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
        users: all.flatMap((one) => {
          const { worksIn } = one;
          const mountPoint = worksIn && mountPoints.find((point) => isAtOrBelow(worksIn, point));
          const how = `has its working directory at ${worksIn}`;
          return mountPoint ? [{ ...named(one), mountPoint, how }] : [];
        }),
      };
    },
  };
}

function toMount({ path, filesystem, rootPath, source }: Mounted, at: number): NamespaceMount {
  const { deviceNumber } = filesystem;
  return { id: at + 1, parentId: 0, deviceNumber, root: rootPath, path, source };
}
