import { rmdir, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { HostError, type BindSubPath, type FileStat, type HostMounts } from "./host.ts";
import { failing } from "./linux-errors.ts";
import { makeDirectories, makeFile } from "./linux-make.ts";
import type { Look, Probes } from "./linux-probes.ts";
import type { Tools } from "./linux-programs.ts";
import { createSubPathWalk } from "./sub-path.ts";

/**
 * Section 21: a directory or file of a volume, bound where a container expects it. The volume's content is the
 * container's own, so that between looking at a path and mounting it anything may be swapped for a link. What is mounted
 * is therefore never a path but a descriptor, opened step by step without following a link and held by a probe child
 * until the kernel has mounted it from `/proc/<pid>/fd/<n>`.
 */
export interface SubPathDeps {
  readonly probes: Probes;
  readonly mounts: HostMounts;
  readonly tools: Tools;
}

type Ask = (look: Look) => Promise<unknown>;

interface Held {
  readonly fd: number;
  readonly pid: number;
  readonly stat: FileStat;
  readonly link?: string;
}

const BIND_MS_MAX = 60_000;

export function bindSubPath(deps: SubPathDeps, request: BindSubPath): Promise<void> {
  return deps.probes.session(async (ask) => {
    const opened: number[] = [];
    try {
      await bindHeld(deps, request, await openInside(ask, request, opened));
    } finally {
      const doing = `let go of ${request.root}`;
      await ask({ action: "closeSteps", path: "", args: { fds: opened }, doing }).catch(() => undefined);
    }
  });
}

async function openInside(ask: Ask, { root, subPath }: BindSubPath, opened: number[]): Promise<Held> {
  const walk = createSubPathWalk(subPath);
  const open = async (args: Readonly<Record<string, unknown>>): Promise<Held> => {
    const held = (await ask({
      action: "openStep",
      path: root,
      args,
      doing: `open "${subPath}" in ${root}`,
    })) as Held;
    opened.push(held.fd);
    return held;
  };
  const trail = [await open({ from: root })];
  const mode = trail[0]?.stat.mode ?? 0o755;
  for (let step = walk.next(); step !== undefined; step = walk.next()) {
    if (step.kind === "back") {
      trail.pop();
      continue;
    }
    const next = await open({ from: trail.at(-1)?.fd, name: step.name, mode });
    if (next.link === undefined) trail.push(next);
    else walk.link(next.link);
  }
  const last = trail.at(-1);
  if (last === undefined) throw new HostError("Outside", `"${subPath}" leads out of ${root}`);
  return last;
}

async function bindHeld(deps: SubPathDeps, { target, readOnly }: BindSubPath, source: Held): Promise<void> {
  const { probes, mounts, tools } = deps;
  if (await mounts.isMountPoint(target)) {
    if (await isSame(probes, target, source)) return;
    await mounts.unmount(target, { lazy: true });
  }
  const undo = await makeTarget(probes, target, source.stat.kind === "directory");
  try {
    const args = ["--no-canonicalize", "--bind", "--", `/proc/${source.pid}/fd/${source.fd}`, target];
    await tools.must("mount", args, { timeoutMs: BIND_MS_MAX, doing: `bind a subPath to ${target}` });
    try {
      if (!(await isSame(probes, target, source)))
        throw new HostError("Failed", `bind a subPath to ${target}: something else was mounted there`);
      if (readOnly) await mounts.remount(target, ["bind", "ro"]);
    } catch (error) {
      await mounts.unmount(target, { lazy: true });
      throw error;
    }
  } catch (error) {
    await undo();
    throw error;
  }
}

/** A mount that hangs or is broken is not the one wanted. */
async function isSame(probes: Probes, target: string, source: Held): Promise<boolean> {
  try {
    const found = await probes.ask({ action: "statTarget", path: target, doing: `look at ${target}` });
    return (found as FileStat).identity === source.stat.identity;
  } catch {
    return false;
  }
}

/** Answers with how to take away what was made, and nothing else. */
async function makeTarget(
  probes: Probes,
  target: string,
  isDirectory: boolean,
): Promise<() => Promise<void>> {
  const made = [...(await makeDirectories(probes, isDirectory ? target : dirname(target), 0o750))].reverse();
  const madeFile = !isDirectory && (await failing(`make ${target}`, () => makeFile(target, 0o640)));
  return async () => {
    if (madeFile) await unlink(target).catch(() => undefined);
    for (const directory of made) await rmdir(directory).catch(() => undefined);
  };
}
