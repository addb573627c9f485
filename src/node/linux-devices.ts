import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { HostError, type FileStat, type HostDevices } from "./host.ts";
import { errnoOf, failing, orMissing } from "./linux-errors.ts";
import { contentOf, FORMAT_MS_MAX } from "./linux-format.ts";
import type { Probes } from "./linux-probes.ts";
import type { Tools } from "./linux-programs.ts";

const LOSETUP_MS_MAX = 30_000;
/** Others take and free loop devices at the same time; a lost race is tried again. */
const TRIES_MAX = 8;

interface Deps {
  readonly clock: Clock;
  readonly probes: Probes;
  readonly tools: Tools;
}

export function createLinuxDevices(deps: Deps): HostDevices {
  const { probes } = deps;
  return {
    growFilesystem: (device, mountPath) => grow(deps, device, mountPath),
    async sizeBytes(device) {
      const doing = `size of ${device}`;
      const found = (await probes.ask({ action: "statTarget", path: device, doing })) as FileStat;
      if (found.deviceNumber === undefined) return found.sizeBytes;
      const sectors = await failing(doing, () =>
        readFile(`/sys/dev/block/${found.deviceNumber}/size`, "utf8"),
      );
      return 512 * Number(sectors.trim());
    },
    async isInUse(path) {
      try {
        return (await probes.ask({ action: "isInUse", path, doing: `open ${path} exclusively` })) === true;
      } catch (error) {
        const code = error instanceof HostError ? errnoOf(error.cause) : undefined;
        if (code === "EBUSY") return true;
        // A device file whose device is gone is held by nobody.
        if (code === "ENXIO" || code === "ENODEV" || code === "ENOMEDIUM") return false;
        throw error;
      }
    },
    loopOf,
    attachLoop: (backing) => attachLoop(deps, backing),
    detachLoop: (backing) => detachLoop(deps, backing),
  };
}

async function grow(deps: Deps, device: string, mountPath: string): Promise<boolean> {
  const { tools } = deps;
  const content = await contentOf(deps, device);
  if (content.kind === "blank") return false;
  const type = content.kind === "filesystem" ? content.type : content.what;
  const options = { timeoutMs: FORMAT_MS_MAX, doing: `grow the ${type} filesystem on ${device}` };
  switch (type) {
    case "ext2":
    case "ext3":
    case "ext4":
      await tools.must("resize2fs", [device], options);
      return true;
    case "xfs":
      await tools.must("xfs_growfs", ["-d", mountPath], options);
      return true;
    case "btrfs":
      await tools.must("btrfs", ["filesystem", "resize", "max", mountPath], options);
      return true;
    default:
      throw new HostError("Failed", `grow ${device}: no tool here grows ${type}`);
  }
}

/** By what the kernel says of each: a look starts no program. A device may lie on a file that has been deleted since. */
async function loopOf(backing: string): Promise<string | undefined> {
  const parent = await orMissing(`resolve ${backing}`, () => realpath(dirname(backing)));
  const path = join(parent ?? dirname(backing), basename(backing));
  const names = (await failing("list loop devices", () => readdir("/sys/block"))).filter((one) =>
    /^loop\d+$/.test(one),
  );
  const found = await Promise.all(names.map(async (name) => ({ name, backing: await backingOf(name) })));
  const loop = found.find((one) => one.backing === path);
  return loop === undefined ? undefined : `/dev/${loop.name}`;
}

async function backingOf(name: string): Promise<string | undefined> {
  const text = await readFile(`/sys/block/${name}/loop/backing_file`, "utf8").catch(() => undefined);
  return text?.replace(/\n$/, "").replace(/ \(deleted\)$/, "");
}

async function attachLoop({ clock, tools }: Deps, backing: string): Promise<string> {
  const doing = `attach a loop device to ${backing}`;
  for (let failures = 1; ; failures++) {
    const there = await loopOf(backing);
    if (there !== undefined) return there;
    try {
      const args = ["--find", "--show", "--", backing];
      return (await tools.must("losetup", args, { timeoutMs: LOSETUP_MS_MAX, doing })).stdout.trim();
    } catch (error) {
      const raced = error instanceof HostError && ["Busy", "NotFound"].includes(error.code);
      if (!raced || failures >= TRIES_MAX || /cannot find|failed to use/i.test(error.message)) throw error;
      await clock.sleep(backoffMs(failures, { initialMs: 10, maxMs: 500 }));
    }
  }
}

async function detachLoop({ clock, tools }: Deps, backing: string): Promise<void> {
  const doing = `detach the loop device of ${backing}`;
  const device = await loopOf(backing);
  if (device === undefined) return;
  await tools.must("losetup", ["--detach", device], { timeoutMs: LOSETUP_MS_MAX, doing });
  // Success says nothing: one in use is only marked to go when its last user does.
  for (let failures = 1; (await loopOf(backing)) === device; failures++) {
    if (failures > TRIES_MAX) throw new HostError("Busy", `${doing}: somebody has ${device} open`);
    await clock.sleep(backoffMs(failures, { initialMs: 10, maxMs: 500 }));
  }
}
