import type { Host } from "./host.ts";

/** kill -9: nothing of the process runs after it, not even its clean-up. */
export class Killed extends Error {
  override readonly name = "Killed";
}

/** Calls that change the machine; each is a moment before which a process can die. */
const STEPS: Readonly<Record<keyof Host, readonly string[]>> = {
  files: [
    "writeDurable",
    "overwrite",
    "rename",
    "makeDirectory",
    "makeFile",
    "removeDirectory",
    "removeFile",
  ],
  images: ["create", "copy", "grow"],
  loops: ["attach", "detach", "refresh"],
  filesystems: ["format", "grow", "check"],
  mounts: ["mount", "bind", "remountBind", "unmount", "freeze", "thaw"],
};

export interface DyingHost {
  readonly host: Host;
  /** Steps done so far. */
  steps(): number;
  readonly isDead: () => boolean;
  /** What it was about to do. */
  lastStep(): string;
}

/**
 * The same machine for a process that dies at its n-th step (from 0): before the step does anything, or, `torn`, in
 * the middle of one that is not atomic.
 */
export function createDyingHost(
  host: Host,
  {
    atStep,
    torn,
  }: { readonly atStep: number; readonly torn?: (step: string, args: readonly unknown[]) => Promise<void> },
): DyingHost {
  let steps = 0;
  let dead = false;
  let last = "";

  function wrap<K extends keyof Host>(part: K): Host[K] {
    const real = host[part] as unknown as Record<string, (...args: unknown[]) => unknown>;
    const wrapped: [string, unknown][] = Object.keys(real).map((name) => [
      name,
      (...args: unknown[]) => {
        if (dead) throw new Killed("dead already");
        if (!STEPS[part].includes(name)) return real[name]?.(...args);
        return step(`${part}.${name}`, args, () => real[name]?.(...args));
      },
    ]);
    return Object.fromEntries(wrapped) as unknown as Host[K];
  }

  async function step(name: string, args: readonly unknown[], work: () => unknown): Promise<unknown> {
    last = `${name} ${String(args[0])}`;
    if (steps++ < atStep) return work();
    dead = true;
    await torn?.(name, args);
    throw new Killed(`killed at step ${atStep}: ${last}`);
  }

  return {
    host: {
      files: wrap("files"),
      images: wrap("images"),
      loops: wrap("loops"),
      filesystems: wrap("filesystems"),
      mounts: wrap("mounts"),
    },
    steps: () => steps,
    isDead: () => dead,
    lastStep: () => last,
  };
}
