import { readFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { HostError, type Host, type HostFilesystems, type HostMounts, type Mount } from "./host.ts";
import { createTools, type Tools } from "./linux-exec.ts";
import { failing } from "./linux-failing.ts";
import { createLinuxFiles, createLinuxImages, usageOf } from "./linux-files.ts";
import { createLinuxLoops } from "./linux-loops.ts";
import { filesystemBytes, probe } from "./linux-probe.ts";

const MOUNT_MS_MAX = 60_000;
/** fsck of a large filesystem reads most of its metadata. */
const CHECK_MS_MAX = 600_000;
/** Without these no volume can be made or mounted. */
const REQUIRED = [
  "losetup",
  "blkid",
  "mount",
  "umount",
  "cp",
  "mkfs.ext4",
  "e2fsck",
  "resize2fs",
  "fsfreeze",
  "blockdev",
  "fallocate",
  "flock",
];

/** This machine: util-linux and e2fsprogs by argument arrays, /proc and /sys by reading. Needs root. */
export function createLinuxHost({
  clock,
  toolDirectories,
}: {
  readonly clock: Clock;
  readonly toolDirectories?: readonly string[];
}): Host {
  const tools = createTools(clock, toolDirectories);
  return {
    files: createLinuxFiles(tools),
    images: createLinuxImages(tools),
    loops: createLinuxLoops({ clock, tools }),
    filesystems: createFilesystems(tools),
    mounts: createMounts(tools),
  };
}

function createFilesystems(tools: Tools): HostFilesystems {
  return {
    offered: () =>
      tools.find("mkfs.xfs") !== undefined && tools.find("xfs_growfs") !== undefined
        ? ["ext4", "xfs"]
        : ["ext4"],
    missingTool: () => REQUIRED.find((name) => tools.find(name) === undefined),
    probe: (device) => probe(tools, device),
    async format(device, type) {
      // Lazy initialisation: 15 ms for 10 GiB. No reserved blocks: nobody but the workload uses it.
      const args =
        type === "ext4"
          ? ["-q", "-F", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1", device]
          : ["-q", "-f", device];
      await tools.run(`mkfs.${type}`, args, { timeoutMs: CHECK_MS_MAX });
    },
    async check(device, type) {
      // Mounting replays xfs's log. Exit 1: errors were found and corrected.
      if (type === "ext4") await tools.run("e2fsck", ["-p", device], { timeoutMs: CHECK_MS_MAX, ok: [1] });
    },
    sizeBytes: (device, type) => filesystemBytes(device, type),
    async grow(device, type, mountPoint) {
      if (type === "xfs") {
        if (mountPoint === undefined) throw new HostError("Failed", "xfs grows only while mounted");
        await tools.run("xfs_growfs", [mountPoint], { timeoutMs: CHECK_MS_MAX });
        return;
      }
      if (mountPoint === undefined)
        await tools.run("e2fsck", ["-f", "-p", device], { timeoutMs: CHECK_MS_MAX, ok: [1] });
      await tools.run("resize2fs", [device], { timeoutMs: CHECK_MS_MAX });
    },
  };
}

function createMounts(tools: Tools): HostMounts {
  const run = async (name: string, args: readonly string[]): Promise<void> => {
    await tools.run(name, args, { timeoutMs: MOUNT_MS_MAX });
  };
  return {
    list: () =>
      failing("read the mount table", async () =>
        parseMountInfo(await readFile("/proc/self/mountinfo", "utf8")),
      ),
    mount: (device, path, type, flags) =>
      run("mount", ["-t", type, ...(flags.length > 0 ? ["-o", flags.join()] : []), "--", device, path]),
    bind: (source, target) => run("mount", ["--bind", "--", source, target]),
    remountBind: (path, flags) => run("mount", ["-o", ["remount", "bind", ...flags].join(), "--", path]),
    unmount: (path) => run("umount", ["--", path]),
    freeze: (path) => run("fsfreeze", ["--freeze", path]),
    async thaw(path) {
      const answer = await tools.run("fsfreeze", ["--unfreeze", path], { timeoutMs: MOUNT_MS_MAX, ok: [1] });
      // One that is not frozen. By the whole text: the path comes first, and a long one pushes this out of an error's message.
      if (answer.exitCode === 0 || /invalid argument/i.test(answer.stderr)) return;
      throw new HostError("Failed", `cannot thaw ${path}: ${answer.stderr.trim()}`);
    },
    usage: usageOf,
  };
}

/** `36 35 7:3 / /mnt rw,noatime shared:1 - ext4 /dev/loop3 rw`; blanks and the like are octal escapes. */
export function parseMountInfo(text: string): readonly Mount[] {
  return text.split("\n").flatMap((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [, , deviceNumber, root, path, options] = before.split(" ");
    if (deviceNumber === undefined || root === undefined || path === undefined) return [];
    const superOptions = after.split(" ")[2] ?? "";
    const failure = failureIn(superOptions);
    return [
      {
        path: unescape(path),
        root: unescape(root),
        deviceNumber,
        readonly: isReadonly(options ?? ""),
        filesystemReadonly: isReadonly(superOptions),
        ...(failure === undefined ? {} : { failure }),
      },
    ];
  });
}

/**
 * ext4 with `errors=remount-ro` says `ro` up to Linux 6.13 and `emergency_ro` since, beside the `rw` it was mounted with;
 * `shutdown` after a forced one. xfs has no word for it: its root answers EIO instead.
 */
const FAILURES = ["emergency_ro", "shutdown"];

const failureIn = (options: string) => FAILURES.find((word) => options.split(",").includes(word));

const isReadonly = (options: string) => options.split(",").includes("ro");

const unescape = (text: string) =>
  text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8)));
