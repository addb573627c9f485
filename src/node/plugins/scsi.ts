import { basename } from "node:path";
import { VolumeError } from "../errors.ts";
import type { Host } from "../host.ts";

/** Kernel files are written by a program with a deadline: a dead disk hangs whoever does it. */
const WRITE_MS_MAX = 30_000;
const FLUSH_MS_MAX = 60_000;

/** The device that joins several ways to one disk, where multipathd made one. */
export async function multipathOf(host: Host, devicePath: string): Promise<string | undefined> {
  const real = await host.files.realPath(devicePath);
  if (real === undefined) return undefined;
  const blocks = (await host.files.list("/sys/block")) ?? [];
  for (const { name } of blocks.filter((block) => block.name.startsWith("dm-")))
    if ((await slavesOf(host, name)).includes(basename(real))) return `/dev/${name}`;
  return undefined;
}

/** Lets go of a disk nobody uses: buffers out, the joining device away, then each way to it out of the kernel. */
export async function releaseDisk(host: Host, devicePath: string, signal: AbortSignal): Promise<void> {
  const real = await host.files.realPath(devicePath);
  if (real === undefined) return;
  const joined = basename(real).startsWith("dm-") ? real : await multipathOf(host, real);
  const ways = joined === undefined ? [basename(real)] : await slavesOf(host, basename(joined));
  if (joined !== undefined) await runOrThrow(host, "multipath", ["-f", joined], signal);
  for (const way of ways) {
    await runOrThrow(host, "blockdev", ["--flushbufs", `/dev/${way}`], signal);
    await writeKernelFile(host, `/sys/block/${way}/device/delete`, "1", signal);
  }
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

async function slavesOf(host: Host, block: string): Promise<readonly string[]> {
  return ((await host.files.list(`/sys/block/${block}/slaves`)) ?? []).map(({ name }) => name);
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
