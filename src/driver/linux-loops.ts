import { readdir, readFile, stat } from "node:fs/promises";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { goneIdentity, HostError, type HostLoops, type LoopDevice } from "./host.ts";
import type { Tools } from "./linux-exec.ts";

/** The loop driver of the kernel, through losetup to change and sysfs to look: a look starts no child. */

const QUERY_MS_MAX = 10_000;
/** Others take and free devices at the same time; a lost race is tried again. */
const ATTACH_MS_MAX = 10_000;
const DETACH_MS_MAX = 5_000;

export function createLinuxLoops({
  clock,
  tools,
}: {
  readonly clock: Clock;
  readonly tools: Tools;
}): HostLoops {
  async function list(): Promise<readonly LoopDevice[]> {
    const names = (await readdir("/sys/block")).filter((name) => /^loop\d+$/.test(name));
    return (await Promise.all(names.map((name) => look(name)))).filter((device) => device !== undefined);
  }

  async function losetup(args: readonly string[]): Promise<string> {
    return (await tools.run("losetup", args, { timeoutMs: QUERY_MS_MAX })).stdout.trim();
  }

  /** Direct I/O keeps one page cache instead of two; not every filesystem below can. */
  async function attachOnce(image: string, readonly: boolean): Promise<string> {
    const args = ["--find", "--show", ...(readonly ? ["--read-only"] : ["--nooverlap"])];
    try {
      return await losetup([...args, "--direct-io=on", "--", image]);
    } catch (error) {
      if (error instanceof HostError && error.code === "Busy") throw error;
      return losetup([...args, "--", image]);
    }
  }

  async function attach(image: string, readonly: boolean): Promise<LoopDevice> {
    const endsAtMs = clock.now() + ATTACH_MS_MAX;
    for (let failures = 1; ; failures++) {
      try {
        const path = await attachOnce(image, readonly);
        const device = await look(path.replace("/dev/", ""));
        if (device !== undefined && (await exists(path))) return device;
        throw new HostError("Busy", `${path} is not there yet`);
      } catch (error) {
        const transient = /busy|temporarily|no such device|not there yet/i.test(String(error));
        if (!transient || clock.now() > endsAtMs) throw error;
        await clock.sleep(backoffMs(failures, { initialMs: 10, maxMs: 500 }));
      }
    }
  }

  async function detach(path: string): Promise<void> {
    const name = path.replace("/dev/", "");
    const before = await look(name);
    if (before === undefined) return;
    const endsAtMs = clock.now() + DETACH_MS_MAX;
    // Success of `losetup -d` says nothing: a device in use is only marked to go when its last user does.
    await losetup(["--detach", path]);
    for (let failures = 1; ; failures++) {
      const now = await look(name);
      if (now?.backing !== before.backing) return;
      if (clock.now() > endsAtMs)
        throw new HostError("Busy", `${path} is in use; it goes when its last user does`);
      await clock.sleep(backoffMs(failures, { initialMs: 10, maxMs: 500 }));
    }
  }

  return {
    list,
    attach: (image, { readonly }) => attach(image, readonly),
    detach,
    async refresh(path) {
      await losetup(["--set-capacity", path]);
    },
    sizeBytes: async (path) =>
      512n * BigInt((await readFile(`/sys/block/${path.replace("/dev/", "")}/size`, "utf8")).trim()),
    async flush(path) {
      await tools.run("blockdev", ["--flushbufs", path], { timeoutMs: 60_000 });
    },
  };
}

async function look(name: string): Promise<LoopDevice | undefined> {
  const read = async (file: string) => (await readFile(`/sys/block/${name}/${file}`, "utf8")).trim();
  try {
    // The kernel spells the present name of the file, also after a rename; one that is deleted has none.
    const backingPath = await read("loop/backing_file");
    return {
      path: `/dev/${name}`,
      deviceNumber: await read("dev"),
      backing: await identityOf(backingPath),
      readonly: (await read("ro")) === "1",
    };
  } catch {
    return undefined;
  }
}

async function identityOf(path: string): Promise<string> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}/${ino}`;
  } catch {
    return goneIdentity(path.replace(/ \(deleted\)$/, ""));
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isBlockDevice();
  } catch {
    return false;
  }
}
