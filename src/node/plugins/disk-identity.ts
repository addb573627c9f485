import { basename, join } from "node:path";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import { sha256, type Paths } from "../paths.ts";

/**
 * Who a disk is. `/dev/sdq` and `/dev/dm-4` are names of this boot only: after the next one another disk may have them,
 * and a path that was written down would format, mount or remove that one. So nothing is kept but the disk's own name
 * (its WWID, as multipathd and udev write it), and every use asks the kernel again which device has that now.
 */
export interface Disk {
  /** The kernel's: `sdq`, `dm-4`. */
  readonly name: string;
  readonly devicePath: string;
  /** "" where the disk has none: a virtual one, a plain image. */
  readonly wwid: string;
}

/** The disk that a path leads to now; undefined where it leads nowhere. */
export async function diskAt(host: Host, path: string): Promise<Disk | undefined> {
  const real = path === "" ? undefined : await host.files.realPath(path);
  return real === undefined ? undefined : toDisk(host, basename(real));
}

/** What is mounted at a path, by its device number: the name in the mount table is that of the day it was mounted. */
export async function mountedDisk(host: Host, path: string): Promise<Disk | undefined> {
  const point = (await host.mounts.table()).at(path);
  const block = point && (await host.files.realPath(`/sys/dev/block/${point.deviceNumber}`));
  return block === undefined ? undefined : toDisk(host, basename(block));
}

async function toDisk(host: Host, name: string): Promise<Disk> {
  return { name, devicePath: `/dev/${name}`, wwid: await wwidOf(host, name) };
}

/** As the kernel has it now. A device that joins several ways carries the name of the disk they lead to. */
async function wwidOf({ files }: Host, name: string): Promise<string> {
  const read = async (file: string) => ((await files.read(join("/sys/block", name, file))) ?? "").trim();
  if (name.startsWith("dm-")) return (await read("dm/uuid")).replace(/^mpath-/, "");
  if (name.startsWith("loop")) return read("loop/backing_file");
  return scsiId((await read("device/wwid")) || (await read("wwid")) || (await read("serial")));
}

const DESIGNATORS: Readonly<Record<string, string>> = { "t10.": "1", "eui.": "2", "naa.": "3" };

/** `naa.600508b4…` of the kernel is `3600508b4…` everywhere else; spaces inside a vendor's name become one `_`. */
function scsiId(wwid: string): string {
  const designator = DESIGNATORS[wwid.slice(0, 4)];
  return sameSpelling(designator === undefined ? wwid : `${designator}${wwid.slice(4)}`);
}

export function sameSpelling(wwid: string): string {
  return wwid.trim().replace(/[\s_]+/g, "_");
}

/** Directly before each use that cannot be undone: the device is still the disk that was meant. */
export async function verifyDisk(host: Host, { name, wwid }: Disk, doing: string): Promise<void> {
  const now = await wwidOf(host, name);
  if (now !== wwid)
    throw new VolumeError(
      "transient",
      `${doing}: /dev/${name} is disk "${now}" now, not "${wwid}"; the disk is looked for again`,
    );
}

/** Every block device that is, or joins ways to, this disk. */
export async function devicesOf(host: Host, wwid: string): Promise<readonly Disk[]> {
  if (wwid === "") return [];
  const names = ((await host.files.list("/sys/block")) ?? []).map(({ name }) => name);
  const disks = await Promise.all(names.map((name) => toDisk(host, name)));
  return disks.filter((disk) => disk.wwid === wwid);
}

/**
 * Which disk a volume is on, from before it is first mounted until it was let go: so that after a reboot, or after the
 * storage gave the same address to another disk, that other one is refused.
 */
export interface DiskRecords {
  /** Rejects where the volume is on another disk. Answers what was known before: nothing, its disk, that it was mounted. */
  claim(directory: string, disk: Disk): Promise<"new" | "known" | "mounted">;
  /** From now on the disk has a filesystem, and is never formatted for this volume. */
  mounted(directory: string, disk: Disk): Promise<void>;
  load(directory: string): Promise<string | undefined>;
  remove(directory: string): Promise<void>;
}

export function createDiskRecords({
  host,
  paths,
}: {
  readonly host: Host;
  readonly paths: Paths;
}): DiskRecords {
  const folder = join(paths.journal, "disks");
  const fileOf = (directory: string) => join(folder, `${sha256(directory)}.json`);

  async function read(directory: string): Promise<{ wwid: string; mounted: boolean } | undefined> {
    const text = await host.files.read(fileOf(directory));
    if (text === undefined) return undefined;
    try {
      const { wwid, mounted } = JSON.parse(text) as { wwid?: unknown; mounted?: unknown };
      return typeof wwid === "string" ? { wwid, mounted: mounted === true } : undefined;
    } catch {
      return undefined;
    }
  }

  async function write(directory: string, record: { wwid: string; mounted: boolean }): Promise<void> {
    await host.files.makeDirectories(folder, 0o700);
    await host.files.writeDurable(fileOf(directory), `${JSON.stringify({ directory, ...record })}\n`, 0o600);
  }

  return {
    load: async (directory) => (await read(directory))?.wwid,
    async claim(directory, { wwid, devicePath }) {
      const before = await read(directory);
      if (before !== undefined && before.wwid !== wwid)
        throw new VolumeError(
          "final",
          `${devicePath} is disk "${wwid}", but the volume at ${directory} is on disk "${before.wwid}": not used; ` +
            `where the disk was replaced on purpose, remove ${fileOf(directory)}`,
        );
      if (before === undefined) await write(directory, { wwid, mounted: false });
      return before === undefined ? "new" : before.mounted ? "mounted" : "known";
    },
    async mounted(directory, { wwid }) {
      if ((await read(directory))?.mounted !== true) await write(directory, { wwid, mounted: true });
    },
    remove: (directory) => host.files.removeFile(fileOf(directory)),
  };
}
