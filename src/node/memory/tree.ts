import { HostError, type FileKind } from "../host.ts";
import { isAtOrBelow } from "../mount-table.ts";
import type { Disk } from "./disks.ts";
import { Unsynced } from "./unsynced.ts";

/** Files, mounts and devices of one simulated machine, as data: what `files.ts`, `mounts.ts` and `loops.ts` work on. */

export interface Inode {
  readonly id: number;
  readonly kind: FileKind;
  mode: number;
  uid: number;
  gid: number;
  bytes: Uint8Array;
  readonly children: Map<string, Inode>;
  readonly linkTarget: string;
  /** Of a block device. */
  readonly device: Device | undefined;
  /** Of a file that is a disk image: its size is the disk's. */
  disk: Disk | undefined;
}

export interface Filesystem {
  /** Of the device it is on: one in an image has that of the loop device by which it is mounted. */
  deviceNumber: string;
  readonly type: string;
  root: Inode;
  sizeBytes: number;
  options: readonly string[];
  /** None of a tmpfs and the like. */
  readonly disk: Disk | undefined;
  /** While it is in use, what of it has not reached its disk. Unmounted everywhere, all of it has. */
  readonly unsynced: Unsynced;
  /** Whoever writes waits for the thaw. */
  isFrozen: boolean;
}

export interface Device {
  readonly deviceNumber: string;
  /** As the kernel took it over from the disk. */
  sizeBytes: number;
  /** None of a loop device without a file. */
  disk: Disk | undefined;
  /** Files that processes have open on it. */
  openers: number;
  /** Who the disk is, whatever its name; "" or none where nobody can tell. */
  readonly wwid?: string;
}

export interface Mounted {
  path: string;
  readonly filesystem: Filesystem;
  readonly root: Inode;
  readonly rootPath: string;
  readonly source: string;
  options: readonly string[];
  shared: boolean;
  /** Processes of the host that work below it or have a file open by way of it: it is busy. */
  users: number;
}

/** Where a walk ended: nothing there yet when `inode` is undefined. */
export interface Place {
  /** Without links. */
  readonly path: string;
  readonly inode: Inode | undefined;
  /** The directory it is in, for making and removing. */
  readonly parent: Inode;
  readonly name: string;
  readonly mount: Mounted;
}

/** As the kernel: a path with more links than this is a loop. */
const LINKS_MAX = 40;

export class Tree {
  /** Disks below /dev, by path; loop devices are in `loops.ts`. */
  readonly devices = new Map<string, Device>();
  /** Mounts at or below these answer nobody, or with an error. */
  readonly hung = new Set<string>();
  readonly broken = new Set<string>();
  /** Counts changes of the mount table. */
  mountChanges = 0;
  /** The last user of a filesystem has gone. */
  onRelease: () => void = () => undefined;
  #mounts: Mounted[] = [];
  /** A walk asks at each step what is mounted there, so that is no search: lowest layer first. */
  readonly #layers = new Map<string, Mounted[]>();
  readonly #users = new Map<Filesystem, number>();
  #lastInode = 1;
  #lastMinor = 30;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    const filesystem = this.newFilesystem("ext4", `254:0`, 1 << 30);
    this.addMount({
      path: "/",
      filesystem,
      root: filesystem.root,
      rootPath: "/",
      source: "/dev/vda",
      options: ["rw", "relatime"],
      shared: false,
      users: 0,
    });
  }

  newInode(kind: FileKind, mode: number, more: { linkTarget?: string; device?: Device } = {}): Inode {
    return {
      id: ++this.#lastInode,
      kind,
      mode,
      uid: 0,
      gid: 0,
      bytes: new Uint8Array(),
      children: new Map(),
      linkTarget: more.linkTarget ?? "",
      device: more.device,
      disk: undefined,
    };
  }

  newFilesystem(type: string, deviceNumber: string, sizeBytes: number, disk?: Disk): Filesystem {
    return {
      deviceNumber,
      type,
      root: this.newInode("directory", 0o755),
      sizeBytes,
      options: [],
      disk,
      unsynced: new Unsynced(this.#nowMs),
      isFrozen: false,
    };
  }

  /** In mount order. */
  get mounts(): readonly Mounted[] {
    return this.#mounts;
  }

  addMount(mount: Mounted): void {
    this.mountChanges++;
    this.#mounts.push(mount);
    const layers = this.#layers.get(mount.path);
    if (layers === undefined) this.#layers.set(mount.path, [mount]);
    else layers.push(mount);
    this.use(mount.filesystem);
  }

  removeMount(mount: Mounted): void {
    this.mountChanges++;
    this.#mounts = this.#mounts.filter((one) => one !== mount);
    const layers = (this.#layers.get(mount.path) ?? []).filter((one) => one !== mount);
    if (layers.length === 0) this.#layers.delete(mount.path);
    else this.#layers.set(mount.path, layers);
    this.unuse(mount.filesystem);
  }

  changeOptions(mount: Mounted, options: readonly string[]): void {
    this.mountChanges++;
    mount.options = options;
  }

  /** It takes no more writes until nothing has it any more and it is mounted anew. */
  failFilesystem(filesystem: Filesystem): void {
    this.mountChanges++;
    filesystem.options = ["rw", "emergency_ro"];
  }

  /** Mounts live on directories, not on names: those below a renamed one move along. */
  moveMounts(from: string, to: string): void {
    const moved = this.#mounts.filter(({ path }) => path.startsWith(`${from}/`));
    if (moved.length === 0) return;
    this.mountChanges++;
    for (const mount of moved) mount.path = `${to}${mount.path.slice(from.length)}`;
    this.#layers.clear();
    for (const mount of this.#mounts)
      this.#layers.set(mount.path, [...(this.#layers.get(mount.path) ?? []), mount]);
  }

  /** Something has the filesystem: a mount, a container's mount, a freeze. */
  use(filesystem: Filesystem): void {
    this.#users.set(filesystem, (this.#users.get(filesystem) ?? 0) + 1);
  }

  unuse(filesystem: Filesystem): void {
    const users = (this.#users.get(filesystem) ?? 0) - 1;
    if (users > 0) {
      this.#users.set(filesystem, users);
      return;
    }
    this.#users.delete(filesystem);
    filesystem.unsynced.syncAll();
    filesystem.options = [];
    this.onRelease();
  }

  isUsed(filesystem: Filesystem): boolean {
    return this.#users.has(filesystem);
  }

  filesystemsInUse(): readonly Filesystem[] {
    return [...this.#users.keys()];
  }

  /** Makes, replaces or removes the name where a walk ended; on the disk once its directory is synced. */
  setEntry(place: Pick<Place, "parent" | "name" | "mount">, inode: Inode | undefined): void {
    this.changeEntries(place.mount.filesystem, [[place, inode]]);
  }

  /** Several at once: what a power loss leaves has all of them or none. */
  changeEntries(
    { unsynced }: Filesystem,
    entries: readonly (readonly [Pick<Place, "parent" | "name">, Inode | undefined])[],
  ): void {
    const changes = entries.map(([{ parent: directory, name }, after]) => {
      const before = directory.children.get(name);
      if (after === undefined) directory.children.delete(name);
      else directory.children.set(name, after);
      return { directory, name, before, after };
    });
    unsynced.changed(changes);
  }

  /** Other content of a file; on the disk once the file is synced. */
  setBytes({ unsynced }: Filesystem, file: Inode, bytes: Uint8Array): void {
    unsynced.willWrite(file);
    file.bytes = bytes;
  }

  /** Of a filesystem without a device: tmpfs, nfs. */
  anonymousNumber(): string {
    return `0:${++this.#lastMinor}`;
  }

  /** Undefined where something on the way is missing or no directory; the last step may be. */
  walk(path: string, { follow }: { readonly follow: boolean }): Place | undefined {
    return this.#walk(path, follow, 0);
  }

  #walk(path: string, follow: boolean, links: number): Place | undefined {
    if (links > LINKS_MAX) throw new HostError("Failed", `walk ${path}: ELOOP`);
    let here = this.#rootPlace();
    const steps = path.split("/").filter((step) => step !== "" && step !== ".");
    for (const [index, step] of steps.entries()) {
      if (here.inode?.kind !== "directory") return undefined;
      const next = step === ".." ? this.#parentOf(here) : this.#child(here, here.inode, step);
      const last = index === steps.length - 1;
      if (next.inode?.kind === "symlink" && (!last || follow)) {
        const rest = steps.slice(index + 1).join("/");
        const target = next.inode.linkTarget;
        return this.#walk(
          `${target.startsWith("/") ? "" : `${here.path}/`}${target}/${rest}`,
          follow,
          links + 1,
        );
      }
      here = next;
    }
    return here;
  }

  #rootPlace(): Place {
    const mount = this.topAt("/");
    if (mount === undefined) throw new Error("the simulated machine has no root");
    return { path: "/", inode: mount.root, parent: mount.root, name: "", mount };
  }

  #parentOf({ path }: Place): Place {
    return this.#walk(path.slice(0, path.lastIndexOf("/")), true, 0) ?? this.#rootPlace();
  }

  #child(place: Place, directory: Inode, name: string): Place {
    const path = `${place.path === "/" ? "" : place.path}/${name}`;
    const mounted = this.topAt(path);
    return {
      path,
      inode: mounted?.root ?? directory.children.get(name),
      parent: directory,
      name,
      mount: mounted ?? place.mount,
    };
  }

  topAt(path: string): Mounted | undefined {
    return this.#layers.get(path)?.at(-1);
  }

  isHung(path: string): boolean {
    return this.hung.size > 0 && [...this.hung].some((mount) => isAtOrBelow(path, mount));
  }

  isBroken(path: string): boolean {
    return this.broken.size > 0 && [...this.broken].some((mount) => isAtOrBelow(path, mount));
  }
}
