import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";
import { devicesOf, diskAt, verifyDisk, type Disk } from "./disk-identity.ts";

/** Kernel files are written by a program with a deadline: a dead disk hangs whoever does it. */
const WRITE_MS_MAX = 30_000;
const FLUSH_MS_MAX = 60_000;

/** The device that joins several ways to one disk, where multipathd made one; whatever else lies on it is none of it. */
export async function multipathOf(host: Host, devicePath: string): Promise<string | undefined> {
  const way = await diskAt(host, devicePath);
  if (way === undefined) return undefined;
  const joined = (await devicesOf(host, way.wwid)).filter(({ name }) => name.startsWith("dm-"));
  for (const { name, devicePath: path } of joined)
    if (name === way.name || (await listOf(host, name, "slaves")).includes(way.name)) return path;
  return undefined;
}

/**
 * Lets go of a disk nobody uses: buffers out, the joining device away, then each way to it out of the kernel. Only of
 * devices that are this disk, each looked at once more before it is touched; one that somebody uses stops all.
 */
export async function releaseDisk(
  host: Host,
  { wwid, ways }: { readonly wwid: string; readonly ways: readonly Disk[] },
  signal: AbortSignal,
): Promise<void> {
  if (wwid === "") return;
  const joined = (await devicesOf(host, wwid)).filter(({ name }) => name.startsWith("dm-"));
  const slaves = (await Promise.all(joined.map(({ name }) => listOf(host, name, "slaves")))).flat();
  const all = [...ways.map(({ name }) => name), ...slaves];
  const names = [...new Set(all)].filter((name) => !name.startsWith("dm-"));
  for (const disk of joined) {
    await refuseUsed(host, disk, []);
    // By the disk's own name: whatever the kernel called the device a moment ago.
    await runOrThrow(host, "multipath", ["-f", wwid], signal);
  }
  const gone = joined.map(({ name }) => name);
  for (const name of names) {
    const way = { name, devicePath: `/dev/${name}`, wwid };
    await refuseUsed(host, way, gone);
    await runOrThrow(host, "blockdev", ["--flushbufs", way.devicePath], signal);
    await verifyDisk(host, way, `remove ${way.devicePath}`);
    await writeKernelFile(host, `/sys/block/${name}/device/delete`, "1", signal);
  }
}

async function refuseUsed(host: Host, disk: Disk, gone: readonly string[]): Promise<void> {
  const doing = `release ${disk.devicePath}`;
  await verifyDisk(host, disk, doing);
  const number = (await host.files.statTarget(disk.devicePath))?.deviceNumber;
  const points = (await host.mounts.table()).points.filter((point) => point.deviceNumber === number);
  const holders = (await listOf(host, disk.name, "holders")).filter((name) => !gone.includes(name));
  const [user] = [...points.map(({ path }) => path), ...holders];
  if (number !== undefined && user !== undefined)
    throw new VolumeError("transient", `${doing}: ${user} still uses it`);
}

export async function writeKernelFile(
  host: Host,
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const { exitCode, stderr } = await host.programs.run("tee", [path], {
    timeoutMs: WRITE_MS_MAX,
    stdin: text,
    signal,
  });
  if (exitCode !== 0) throw new VolumeError("final", `write ${path}: ${stderr.trim()}`);
}

async function listOf(host: Host, block: string, what: "slaves" | "holders"): Promise<readonly string[]> {
  return ((await host.files.list(`/sys/block/${block}/${what}`)) ?? []).map(({ name }) => name);
}

async function runOrThrow(
  host: Host,
  program: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { exitCode, stderr } = await host.programs.run(program, args, { timeoutMs: FLUSH_MS_MAX, signal });
  if (exitCode !== 0)
    throw new VolumeError("final", `${program} ${args.join(" ")}: exit code ${exitCode}: ${stderr.trim()}`);
}
