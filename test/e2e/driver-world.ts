import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Clock } from "../../src/base/clock.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import type { Host } from "../../src/driver/host.ts";
import { createLinuxHost, parseMountInfo } from "../../src/driver/linux-host.ts";
import type { DriverOptions } from "../../src/driver/options.ts";
import { openPeer, type Peer } from "../../src/driver/stage.testing.ts";

/** Real loop devices and mounts below one directory, all of which are gone again after `close`. */
export interface RealWorld {
  readonly root: string;
  readonly host: Host;
  readonly state: string;
  path(...names: string[]): string;
  open(options?: Partial<DriverOptions>, host?: Host): Promise<Peer>;
  /** Mount points and loop devices that lie below this directory. */
  leftovers(): Promise<{ readonly mounts: readonly string[]; readonly devices: readonly string[] }>;
  close(): Promise<void>;
}

export const run = promisify(execFile);

/** Why real devices cannot be used here; undefined where they can. */
export async function whyNoDevices(): Promise<string | undefined> {
  if (process.platform !== "linux") return "loop devices need Linux";
  if (process.getuid?.() !== 0) return "loop devices need root";
  const missing = createLinuxHost({ clock: createSystemClock() }).filesystems.missingTool();
  if (missing !== undefined) return `${missing} is not installed`;
  try {
    await run("losetup", ["--find"]);
    return undefined;
  } catch {
    return "this machine has no loop devices to give";
  }
}

/** A device in use is watched for 5 s before it is called busy: half a second here. Deadlines of tools stay as they are. */
export function createHurriedClock(): Clock {
  const clock = createSystemClock();
  return {
    ...clock,
    now: () => clock.now() * 10,
    sleep: (ms, signal) => clock.sleep(ms / 10, signal),
  };
}

let peers = 0;

export async function openRealWorld(): Promise<RealWorld> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "loop-driver-")));
  const clock = createSystemClock();
  const host = createLinuxHost({ clock });
  const state = join(root, "state");
  for (const name of ["stage", "pods"]) await mkdir(join(root, name));

  const mountsBelow = async () =>
    parseMountInfo(await readFile("/proc/self/mountinfo", "utf8"))
      .map(({ path }) => path)
      .filter((path) => path.startsWith(`${root}/`));

  async function devicesBelow(): Promise<string[]> {
    const names = (await readdir("/sys/block")).filter((name) => name.startsWith("loop"));
    const found = await Promise.all(
      names.map(async (name) => [`/dev/${name}`, await backingOf(name)] as const),
    );
    const own: string[] = found
      .filter(([, backing]) => backing.startsWith(`${root}/`))
      .map(([device]) => device);
    // Read-only devices are stacked on ours.
    const stacked = found.filter(([, backing]) => own.includes(backing)).map(([device]) => device);
    return [...stacked, ...own];
  }

  return {
    root,
    host,
    state,
    path: (...names) => join(root, ...names),
    async open(options = {}, machine = host) {
      const peer = openPeer(machine, clock, { stateDir: state, ...options }, `${root} ${peers++}`);
      await peer.driver.recover();
      return peer;
    },
    leftovers: async () => ({ mounts: await mountsBelow(), devices: await devicesBelow() }),
    async close() {
      for (const path of await mountsBelow()) await host.mounts.thaw(path).catch(() => undefined);
      // Marked now, they go with what is mounted: images on a disk of their own cannot be found once that is unmounted.
      for (const device of await devicesBelow())
        await run("losetup", ["--detach", device]).catch(() => undefined);
      for (const path of (await mountsBelow()).reverse())
        await run("umount", ["--lazy", path]).catch(() => undefined);
      for (const device of await devicesBelow())
        await run("losetup", ["--detach", device]).catch(() => undefined);
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function backingOf(name: string): Promise<string> {
  try {
    return (await readFile(`/sys/block/${name}/loop/backing_file`, "utf8")).trim();
  } catch {
    return "";
  }
}
