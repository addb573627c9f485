import { HostError } from "../host.ts";
import { diskOf, filesystemOn } from "./disks.ts";
import { toStat } from "./files.ts";
import type { Device, Inode, Place, Tree } from "./tree.ts";

/** A number of the loop driver, and what is attached there now. Its node below /dev stays when that goes. */
export interface LoopDevice extends Device {
  /** `/dev/loop3`. */
  readonly path: string;
  /** Counts every attach and detach of the machine. */
  diskseq: number;
  backing: LoopBacking | undefined;
  readonly: boolean;
  /** Detached when its last user goes. */
  autoclear: boolean;
}

export interface LoopBacking {
  readonly inode: Inode;
  /** As the kernel noted it when it was attached. */
  readonly path: string;
  /** Device and inode, which survive renames and deletion. */
  readonly identity: string;
}

export interface AttachLoop {
  readonly readonly: boolean;
  readonly avoid?: ReadonlySet<string>;
}

/**
 * Loop devices as the kernel has them: numbers are given again, the lowest first; a device with a user is not detached but
 * marked to go with its last one; a node stays when its device is gone, and names whatever is attached there next. Users
 * are open files, a mounted filesystem, whichever namespace it is mounted in, and a loop device on top of it.
 */
export class Loops {
  readonly #tree: Tree;
  readonly #held: ReadonlySet<string>;
  /** By number. */
  #all: LoopDevice[] = [];
  readonly #marked = new Set<LoopDevice>();
  #diskseq = 0;

  constructor(tree: Tree, held: ReadonlySet<string>) {
    this.#tree = tree;
    this.#held = held;
    tree.onRelease = () => this.settle();
  }

  /** Those with something behind them. */
  attached(): readonly LoopDevice[] {
    return this.#all.filter(({ backing }) => backing !== undefined);
  }

  at(path: string): LoopDevice | undefined {
    return this.#all.find((device) => device.path === path && device.backing !== undefined);
  }

  isUsed(device: LoopDevice): boolean {
    return (
      device.openers > 0 ||
      this.#held.has(device.path) ||
      this.isMounted(device) ||
      this.#all.some(({ backing }) => backing?.inode.device === device)
    );
  }

  /** Its filesystem, in any namespace, or frozen and unmounted: that goes on keeping its device. */
  isMounted(device: Device): boolean {
    const filesystem = filesystemOn(device.disk);
    return (
      filesystem !== undefined &&
      filesystem.deviceNumber === device.deviceNumber &&
      this.#tree.isUsed(filesystem)
    );
  }

  attach(place: Place, { readonly, avoid }: AttachLoop): LoopDevice {
    const { inode } = place;
    if (inode === undefined) throw new HostError("NotFound", `attach a loop device to ${place.path}: ENOENT`);
    const disk = inode.device === undefined ? diskOf(inode) : inode.device.disk;
    const sizeBytes = inode.device?.sizeBytes ?? disk?.sizeBytes ?? 0;
    let number = 0;
    while (this.#all[number]?.backing !== undefined || avoid?.has(`/dev/loop${number}`) === true) number++;
    const device = this.#numbered(number);
    const { identity } = toStat({ ...place, inode });
    const backing = { inode, path: place.path, identity };
    return Object.assign(device, {
      diskseq: ++this.#diskseq,
      backing,
      disk,
      sizeBytes,
      readonly,
      autoclear: false,
    });
  }

  /** Whether it is gone; otherwise it is marked. */
  detach(device: LoopDevice): boolean {
    device.autoclear = true;
    this.#marked.add(device);
    this.settle();
    return device.backing === undefined;
  }

  keep(device: LoopDevice): void {
    device.autoclear = false;
    this.#marked.delete(device);
  }

  /** A user has gone. */
  settle(): void {
    for (let again = this.#marked.size > 0; again;) {
      again = false;
      for (const device of this.#marked) {
        if (this.isUsed(device)) continue;
        this.#clear(device);
        this.#diskseq++;
        // It may have been the user of another.
        again = this.#marked.size > 0;
      }
    }
  }

  /** Everything is detached. `diskseq` begins anew, so a record of the boot before may hold a number of this one. */
  reboot(): void {
    for (const device of this.#all) {
      this.#clear(device);
      device.openers = 0;
      const place = this.#tree.walk(device.path, { follow: false });
      place?.parent.children.delete(place.name);
    }
    this.#all = [];
    this.#diskseq = 0;
  }

  #clear(device: LoopDevice): void {
    this.#marked.delete(device);
    Object.assign(device, { backing: undefined, disk: undefined, sizeBytes: 0, autoclear: false });
  }

  /** Its node below /dev is made with the first use of a number. */
  #numbered(number: number): LoopDevice {
    const known = this.#all[number];
    if (known !== undefined) return known;
    if (number > this.#all.length) this.#numbered(number - 1);
    const device: LoopDevice = {
      path: `/dev/loop${number}`,
      deviceNumber: `7:${number}`,
      sizeBytes: 0,
      disk: undefined,
      openers: 0,
      diskseq: 0,
      backing: undefined,
      readonly: false,
      autoclear: false,
    };
    this.#all.push(device);
    const place = this.#tree.walk(device.path, { follow: false });
    place?.parent.children.set(place.name, this.#tree.newInode("block", 0o660, { device }));
    return device;
  }
}
