import { DRIVER_VIEW, mapCalls, type HostCall } from "../sim/host-calls.ts";
import type { Host } from "./host.ts";

/** kill -9: nothing of the process runs after it, not even its clean-up. */
export class Killed extends Error {
  override readonly name = "Killed";
}

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

  function around({ name, args }: HostCall, work: () => unknown): unknown {
    if (dead) throw new Killed("dead already");
    return DRIVER_VIEW.changes.has(name) ? step(name, args, work) : work();
  }

  async function step(name: string, args: readonly unknown[], work: () => unknown): Promise<unknown> {
    last = `${name} ${String(args[0])}`;
    if (steps++ < atStep) return work();
    dead = true;
    await torn?.(name, args);
    throw new Killed(`killed at step ${atStep}: ${last}`);
  }

  return {
    host: mapCalls(host, DRIVER_VIEW, around),
    steps: () => steps,
    isDead: () => dead,
    lastStep: () => last,
  };
}
