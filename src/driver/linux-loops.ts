import { open, readdir, readFile, stat } from "node:fs/promises";
import { backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { HostError, type AttachOptions, type HostLoops, type LoopDevice } from "./host.ts";
import { createBackings, type Backings } from "./linux-backing.ts";
import type { Tools } from "./linux-exec.ts";
import { codeOf, failing } from "./linux-failing.ts";
import { holdersOf } from "./linux-holders.ts";

/**
 * The loop driver of the kernel, through losetup to change and sysfs to look: a look starts no child.
 *
 * A number says nothing about a device: detached by whoever closes it last, loop3 is given to the next file that asks.
 * What a device is, its `diskseq` and the inode behind it tell; and while it is held open (`pin`), nobody else gets its
 * number. So whatever names a device by its path does that with the device pinned and looked at.
 */

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
  const backings = createBackings(tools);
  const look = (name: string) => lookAt(backings, name);
  const list = () => listAll(backings);
  const pin = (device: LoopDevice) => pinned(backings, device);

  async function losetup(args: readonly string[]): Promise<string> {
    return (await tools.run("losetup", args, { timeoutMs: QUERY_MS_MAX })).stdout.trim();
  }

  /** losetup asked for a device of a file that has one takes the mark off that one: the flag is cleared by no other option. */
  async function keep(device: LoopDevice, image: string): Promise<LoopDevice> {
    if (!device.autoclear) return device;
    const release = await pin(device);
    try {
      const readonly = device.readonly ? ["--read-only"] : [];
      await losetup(["--find", "--nooverlap", "--show", ...readonly, "--", image]);
      const now = await look(nameOf(device.path));
      if (now === undefined || !isSame(now, device) || now.autoclear) throw await goingError(device);
      return now;
    } finally {
      await release();
    }
  }

  /** Direct I/O keeps one page cache instead of two; not every filesystem below can. */
  async function attachAt(path: string, image: string, options: readonly string[]): Promise<void> {
    try {
      await losetup([...options, "--direct-io=on", "--", path, image]);
    } catch (error) {
      if (error instanceof HostError && error.code === "Busy") throw error;
      // Refused before or after the file was attached, as losetup's version has it.
      if ((await look(nameOf(path))) === undefined) await losetup([...options, "--", path, image]);
    }
  }

  async function attachOnce(image: string, { readonly, avoid }: AttachOptions): Promise<LoopDevice> {
    const file = await stat(image, { bigint: true }).catch((error: unknown) => {
      throw new HostError("NotFound", `look at ${image}: it cannot be attached`, { cause: error });
    });
    const identity = `${file.dev}/${file.ino}`;
    const isImage = file.isFile();
    const existing = isImage ? (await list()).find(({ backing }) => backing === identity) : undefined;
    if (existing !== undefined) return keep(existing, image);
    const path = await choosePath(backings, avoid ?? new Set());
    await attachAt(path, image, [...(readonly ? ["--read-only"] : []), ...(isImage ? ["--nooverlap"] : [])]);
    const device = await look(nameOf(path));
    if (device?.backing === identity && (await isBlockDevice(path))) return device;
    throw new HostError("Busy", `${path} is not there yet`);
  }

  /** One at a time: all would choose the same free number, and 20 at once took 10 s to sort that out. */
  let last: Promise<unknown> = Promise.resolve();
  function attachInTurn(image: string, options: AttachOptions): Promise<LoopDevice> {
    const turn = last.then(() => attachOnce(image, options));
    last = turn.catch(() => undefined);
    return turn;
  }

  async function attach(image: string, options: AttachOptions): Promise<LoopDevice> {
    const endsAtMs = clock.now() + ATTACH_MS_MAX;
    for (let failures = 1; ; failures++) {
      try {
        return await attachInTurn(image, options);
      } catch (error) {
        const transient =
          /busy|temporarily|no such device|not there yet|overlapping|another device by now/i.test(
            String(error),
          );
        if (!transient || clock.now() > endsAtMs) throw error;
        await clock.sleep(backoffMs(failures, { initialMs: 10, maxMs: 500 }));
      }
    }
  }

  async function detach(device: LoopDevice): Promise<void> {
    const endsAtMs = clock.now() + DETACH_MS_MAX;
    if (!(await marked(device))) return;
    for (let failures = 1; ; failures++) {
      const now = await look(nameOf(device.path));
      if (now === undefined || !isSame(now, device)) return;
      if (clock.now() > endsAtMs) throw await goingError(device);
      await clock.sleep(backoffMs(failures, { initialMs: 10, maxMs: 500 }));
    }
  }

  /**
   * Marks it to go with its last user, us included: success of `losetup -d` says no more. Pinned, so that the mark
   * can only hit this device. False where it is gone already.
   */
  async function marked(device: LoopDevice): Promise<boolean> {
    let release: () => Promise<void>;
    try {
      release = await pin(device);
    } catch (error) {
      if (error instanceof HostError && error.code === "NotFound") return false;
      throw error;
    }
    try {
      await losetup(["--detach", device.path]);
    } finally {
      await release();
    }
    return true;
  }

  return {
    list,
    attach,
    detach,
    pin,
    async refresh(path) {
      await losetup(["--set-capacity", path]);
    },
    sizeBytes: async (path) =>
      512n * BigInt((await readFile(`/sys/block/${nameOf(path)}/size`, "utf8")).trim()),
    async flush(path) {
      await tools.run("blockdev", ["--flushbufs", path], { timeoutMs: 60_000 });
    },
  };
}

async function listAll(backings: Backings): Promise<readonly LoopDevice[]> {
  const names = await failing("list the loop devices", loopNames);
  await backings.learn(names, async (name) => {
    await readAttribute(name, "loop/backing_file");
    return readAttribute(name, "diskseq");
  });
  const found = await Promise.all(names.map((name) => lookAt(backings, name)));
  return found.filter((device) => device !== undefined);
}

async function loopNames(): Promise<readonly string[]> {
  return (await readdir("/sys/block")).filter((name) => /^loop\d+$/.test(name));
}

async function pinned(backings: Backings, device: LoopDevice): Promise<() => Promise<void>> {
  const gone = (cause?: unknown) =>
    new HostError("NotFound", `${device.path} is another device by now, or none`, { cause });
  const file = await failing(`open ${device.path}`, () => open(device.path, "r")).catch((error: unknown) => {
    throw error instanceof HostError && isAbsent(error.cause) ? gone(error) : error;
  });
  try {
    const now = await lookAt(backings, nameOf(device.path));
    if (now === undefined || !isSame(now, device)) throw gone();
    return () => file.close();
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Free, and the longest so: containers have copies of device nodes, which nobody can look up, and a number that is
 * not used again soon is a dead end for those that are left over. One more than there are where none is free.
 */
async function choosePath(backings: Backings, avoid: ReadonlySet<string>): Promise<string> {
  const names = await loopNames();
  const free = await Promise.all(
    names.map(async (name) => ({
      path: `/dev/${name}`,
      isFree: (await lookAt(backings, name)) === undefined,
      diskseq: Number((await readAttribute(name, "diskseq").catch(() => "")) || 0),
    })),
  );
  const [oldest] = free
    .filter(({ path, isFree }) => isFree && !avoid.has(path))
    .sort((a, b) => a.diskseq - b.diskseq);
  if (oldest !== undefined) return oldest.path;
  let number = Math.max(-1, ...names.map((name) => Number(name.slice("loop".length)))) + 1;
  while (avoid.has(`/dev/loop${number}`)) number++;
  return `/dev/loop${number}`;
}

async function goingError({ path, deviceNumber }: LoopDevice): Promise<HostError> {
  const holders = await holdersOf(deviceNumber);
  const who =
    holders.length === 0 ? "a mount or a process that cannot be seen from here" : holders.join(", ");
  return new HostError("Busy", `${path} is in use by ${who}; it is detached when its last user closes it`);
}

const nameOf = (path: string) => path.replace("/dev/", "");

/** The file may have been deleted or replaced since, which changes what can be told of it. */
function isSame(now: LoopDevice, device: LoopDevice): boolean {
  if (device.diskseq !== "") return now.diskseq === device.diskseq;
  return now.backing === device.backing;
}

const readAttribute = async (name: string, file: string) =>
  (await readFile(`/sys/block/${name}/${file}`, "utf8")).trim();

/** How sysfs and /dev say that there is no such device, or that it went while it was looked at. Nothing else says so. */
const ABSENT = new Set(["ENOENT", "ENODEV", "ENXIO"]);

const isAbsent = (error: unknown) => ABSENT.has(codeOf(error) ?? "");

/** Undefined where no file is behind it. What cannot be read is an error: "no device" lets go of volumes and copies them. */
async function lookAt(backings: Backings, name: string): Promise<LoopDevice | undefined> {
  return failing(`look at loop device ${name}`, async () => {
    const read = (file: string) => readAttribute(name, file);
    // Before Linux 5.15 there is none.
    const diskseqNow = () => read("diskseq").catch((error: unknown) => (isAbsent(error) ? "" : raise(error)));
    try {
      const diskseq = await diskseqNow();
      const path = await read("loop/backing_file");
      const device = {
        path: `/dev/${name}`,
        deviceNumber: await read("dev"),
        diskseq,
        backing: await backings.of({ name, diskseq, path }),
        readonly: (await read("ro")) === "1",
        autoclear: (await read("loop/autoclear")) === "1",
      };
      // Detached and attached again while we were reading: two halves of two devices.
      return diskseq === (await diskseqNow()) ? device : await lookAt(backings, name);
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  });
}

function raise(error: unknown): never {
  throw error;
}

async function isBlockDevice(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isBlockDevice();
  } catch {
    return false;
  }
}
