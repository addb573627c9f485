import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const COMMAND_MS_MAX = 10_000;

/** What drivers mounted and attached below a directory, and nothing else of this machine. */
export async function clearHost(directory: string): Promise<void> {
  // Last mounted, first unmounted; one that is stuck leaves the tree at least.
  for (const mount of (await mountsBelow(directory)).toReversed())
    await run("umount", ["--lazy", mount], { timeout: COMMAND_MS_MAX }).catch(() => undefined);
  for (const device of await loopDevicesBelow(directory))
    await run("losetup", ["--detach", device], { timeout: COMMAND_MS_MAX }).catch(() => undefined);
}

export async function mountsBelow(directory: string): Promise<string[]> {
  const table = await readFile("/proc/self/mountinfo", "utf8").catch(() => "");
  return table
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path.startsWith(`${directory}/`));
}

async function loopDevicesBelow(directory: string): Promise<string[]> {
  const names = (await readdir("/sys/block").catch(() => [])).filter((name) => name.startsWith("loop"));
  const devices = await Promise.all(
    names.map(async (name) => {
      const backing = await readFile(`/sys/block/${name}/loop/backing_file`, "utf8").catch(() => "");
      return backing.startsWith(`${directory}/`) ? [`/dev/${name}`] : [];
    }),
  );
  return devices.flat();
}
