import { HostError, type FileKind } from "../host.ts";
import { isAtOrBelow } from "../mount-table.ts";

/** Files, mounts and devices of one simulated machine, as data: what `node-host-files.ts` and `-mounts.ts` work on. */

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
  readonly device?: Device;
}

export interface Filesystem {
  readonly deviceNumber: string;
  readonly type: string;
  readonly root: Inode;
  sizeBytes: number;
  options: readonly string[];
}

export interface Device {
  readonly deviceNumber: string;
  sizeBytes: number;
  filesystem: Filesystem | undefined;
  /** Who the disk is, whatever its name; "" or none where nobody can tell. */
  readonly wwid?: string;
  /** What a loop device stands on: a file or another device. */
  readonly backing?: { readonly inode: Inode; readonly path: string };
}

export interface Mounted {
  path: string;
  readonly filesystem: Filesystem;
  readonly root: Inode;
  readonly rootPath: string;
  readonly source: string;
  options: readonly string[];
  shared: boolean;
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
  readonly mounts: Mounted[] = [];
  readonly devices = new Map<string, Device>();
  /** Mounts at or below these answer nobody, or with an error. */
  readonly hung = new Set<string>();
  readonly broken = new Set<string>();
  #lastInode = 1;
  #lastMinor = 30;

  constructor() {
    const filesystem = this.newFilesystem("ext4", `254:0`, 1 << 30);
    this.mounts.push({
      path: "/",
      filesystem,
      root: filesystem.root,
      rootPath: "/",
      source: "/dev/vda",
      options: ["rw", "relatime"],
      shared: false,
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
      ...(more.device === undefined ? {} : { device: more.device }),
    };
  }

  newFilesystem(type: string, deviceNumber: string, sizeBytes: number): Filesystem {
    return { deviceNumber, type, root: this.newInode("directory", 0o755), sizeBytes, options: [] };
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
    return this.mounts.findLast((mount) => mount.path === path);
  }

  isHung(path: string): boolean {
    return [...this.hung].some((mount) => isAtOrBelow(path, mount));
  }

  isBroken(path: string): boolean {
    return [...this.broken].some((mount) => isAtOrBelow(path, mount));
  }
}
