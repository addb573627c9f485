import { join } from "node:path";
import type { Host } from "../host.ts";
import type { MemoryHost } from "../memory/host.ts";
import { diskAt } from "./disk-identity.ts";

/**
 * Disks of a storage network on a simulated machine: one is the volume's, the others are somebody else's and must never
 * be touched. After a reboot the kernel gives the same names to other disks; links of udev lead to the right ones.
 */
export const OURS = "3600000000000000a";
export const WWN = "500a0981891b8dc5";
export const IQN = "iqn.2026-01.org.example:disk";
export const BY_PATH = `/dev/disk/by-path/pci-0000:41:00.0-fc-0x${WWN}-lun-0`;
const ISCSI_LINK = `/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-${IQN}-lun-7`;
const MIB = 1 << 20;

/** One with data, one blank: what would be mounted by mistake, and what would be formatted. */
const OTHERS = { data: "3600000000000000b", blank: "3600000000000000c" };

export interface San {
  /** The machine as the plugin sees it: everything done to a disk is noted. */
  readonly host: Host;
  /** Disks that were formatted, mounted, bound, flushed or removed, by their own names. */
  readonly touched: Set<string>;
  /** What the volume's disk is called now. */
  ourName(): string;
  /** Mounts and sessions go, and every disk gets the name of another. */
  reboot(): Promise<void>;
  othersAreWhole(): Promise<boolean>;
}

export async function createSan(
  machine: MemoryHost,
  { joined, overIscsi }: { readonly joined: boolean; readonly overIscsi: boolean },
): Promise<San> {
  const { files } = machine;
  for (const path of [
    "/dev/disk/by-path",
    "/dev/disk/by-id",
    "/sys/block",
    "/sys/class/scsi_host/host1",
    "/sys/class/iscsi_host",
  ])
    await files.makeDirectories(path, 0o755);
  const order = [OURS, OTHERS.data, OTHERS.blank];
  let boots = 0;
  const wwidOf = (slot: number) => order[(slot + boots) % order.length] ?? "";
  const letters = ["b", "c", "d"];
  const content = new Map<string, string>();
  for (const [slot, wwid] of order.entries()) {
    const path = `/dev/${joined ? "dm-" : "sd"}${joined ? slot : letters[slot]}`;
    machine.addDevice(path, 64 * MIB, { wwid });
    content.set(wwid, path);
  }
  if (joined)
    for (const [slot, wwid] of order.entries())
      machine.addDevice(`/dev/sd${letters[slot]}`, 64 * MIB, { wwid });
  await fill(machine, content.get(OTHERS.data) ?? "");
  const touched = new Set<string>();

  /** What udev and multipathd make of the disks that the kernel has now. */
  async function link(): Promise<void> {
    for (const directory of ["/dev/disk/by-path", "/dev/disk/by-id"])
      for (const { name } of (await files.list(directory)) ?? [])
        await files.removeFile(join(directory, name));
    for (const [slot, letter] of letters.entries()) {
      const wwid = wwidOf(slot);
      if ((await files.stat(`/dev/sd${letter}`)) === undefined) continue;
      await files.symlink(`/dev/sd${letter}`, `/dev/disk/by-id/scsi-${wwid}`);
      if (joined) await files.makeDirectories(`/sys/block/dm-${slot}/slaves/sd${letter}`, 0o755);
      if (wwid !== OURS) continue;
      if (!overIscsi) await files.symlink(`/dev/sd${letter}`, BY_PATH);
      else if ((await files.stat("/sys/class/iscsi_host/host1")) !== undefined)
        await files.symlink(`/dev/sd${letter}`, ISCSI_LINK);
    }
  }
  await link();
  addPrograms(machine, { touched, link });

  return {
    touched,
    host: noting(machine, touched),
    ourName: () =>
      `/dev/${joined ? `dm-${order.findIndex((_, slot) => wwidOf(slot) === OURS)}` : `sd${letters[order.findIndex((_, slot) => wwidOf(slot) === OURS)]}`}`,
    async reboot() {
      machine.reboot();
      await files.removeTree("/sys/class/iscsi_host");
      await files.makeDirectories("/sys/class/iscsi_host", 0o755);
      // What was removed from the kernel is there again: the storage did not lose it.
      const names = [
        letters.map((letter) => `/dev/sd${letter}`),
        ...(joined ? [order.map((_, slot) => `/dev/dm-${slot}`)] : []),
      ];
      for (const family of names) {
        for (const [slot, path] of family.entries())
          if ((await files.stat(path)) === undefined)
            machine.addDevice(path, 64 * MIB, { wwid: wwidOf(slot) });
        machine.renameDevices(
          new Map(family.map((path, slot) => [path, family[(slot + order.length - 1) % order.length] ?? ""])),
        );
      }
      boots++;
      await link();
    },
    async othersAreWhole() {
      const disk = await findByWwid(machine, OTHERS.data, joined);
      const path = "/tmp/look";
      await files.makeDirectories(path, 0o755);
      await machine.mounts.mount({ source: disk, target: path, type: "ext4", options: [] });
      const text = await files.read(`${path}/theirs`);
      await machine.mounts.unmount(path);
      const blank = await machine.devices.growFilesystem(await findByWwid(machine, OTHERS.blank, joined), "");
      return text === "data" && !blank;
    },
  };
}

async function fill(machine: MemoryHost, disk: string): Promise<void> {
  await machine.files.makeDirectories("/tmp/look", 0o755);
  await machine.mounts.formatAndMount({ source: disk, target: "/tmp/look", type: "ext4", options: [] });
  await machine.files.writeFile("/tmp/look/theirs", Buffer.from("data"), 0o600);
  await machine.mounts.unmount("/tmp/look");
}

async function findByWwid(machine: MemoryHost, wwid: string, joined: boolean): Promise<string> {
  for (const { name } of (await machine.files.list("/sys/block")) ?? [])
    if (name.startsWith(joined ? "dm-" : "sd") && (await diskAt(machine, `/dev/${name}`))?.wwid === wwid)
      return `/dev/${name}`;
  return "";
}

/** A machine whose mounts of disks are noted. */
function noting(machine: MemoryHost, touched: Set<string>): Host {
  const note = async (source: string) => {
    const disk = source.startsWith("/dev/") ? await diskAt(machine, source) : undefined;
    if (disk !== undefined) touched.add(disk.wwid);
  };
  const { mounts, devices } = machine;
  return {
    ...machine,
    mounts: {
      ...mounts,
      mount: async (request) => {
        await note(request.source);
        return mounts.mount(request);
      },
      bind: async (source, target, options) => {
        await note(source);
        return mounts.bind(source, target, options);
      },
      formatAndMount: async (request) => {
        await note(request.source);
        return mounts.formatAndMount(request);
      },
    },
    devices: {
      ...devices,
      growFilesystem: async (device, path) => {
        await note(device);
        return devices.growFilesystem(device, path);
      },
    },
  };
}

function addPrograms(
  machine: MemoryHost,
  { touched, link }: { readonly touched: Set<string>; readonly link: () => Promise<void> },
): void {
  const { files } = machine;
  const done = { exitCode: 0, stdout: "", stderr: "" };
  machine.addProgram("iscsiadm", async (args) => {
    const host = "/sys/class/iscsi_host/host1";
    if (args.includes("show")) return { ...done, stdout: "iface.transport_name = tcp\n" };
    if (args.includes("--login")) {
      const session = `${host}/device/session1`;
      const connection = `${session}/connection1:0/iscsi_connection/connection1:0`;
      for (const path of [connection, `${session}/iscsi_session/session1`])
        await files.makeDirectories(path, 0o755);
      const texts = {
        [`${session}/iscsi_session/session1/targetname`]: IQN,
        [`${connection}/persistent_address`]: "10.0.0.1",
        [`${connection}/persistent_port`]: "3260",
      };
      for (const [path, text] of Object.entries(texts))
        await files.writeFile(path, Buffer.from(`${text}\n`), 0o444);
    }
    if (args.includes("--logout")) await files.removeTree(host);
    await link();
    return done;
  });
  machine.addProgram("tee", async ([path = ""]) => {
    const [, name] = /^\/sys\/block\/([^/]+)\/device\/delete$/.exec(path) ?? [];
    if (name !== undefined) {
      touched.add((await diskAt(machine, `/dev/${name}`))?.wwid ?? "");
      machine.removeDevice(`/dev/${name}`);
    }
    await link();
    return done;
  });
  machine.addProgram("multipath", async ([, which = ""]) => {
    const disk = which.startsWith("/") ? await diskAt(machine, which) : undefined;
    touched.add(disk?.wwid ?? which);
    return done;
  });
  machine.addProgram("blockdev", async ([, path = ""]) => {
    touched.add((await diskAt(machine, path))?.wwid ?? "");
    return done;
  });
}
