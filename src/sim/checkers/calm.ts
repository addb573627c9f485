import type { World } from "../world.ts";

/** After its network was bad a watch may be silent for 90 s before it is opened again; after a start everything is read. */
export const CALM_MS = 120_000;

export interface Calm {
  /** To be called about once a simulated second. */
  look(): void;
  forMs(process: string): number;
}

/** For how long each process has run with nothing in its way. */
export function createCalm({
  processes,
  server,
  scheduler,
}: Pick<World, "processes" | "server" | "scheduler">): Calm {
  const since = new Map<string, { readonly lives: number; readonly ms: number }>();
  return {
    look(): void {
      for (const [name, process] of processes)
        if (!process.isUnhindered || !server.isUp || since.get(name)?.lives !== process.lives)
          since.set(name, { lives: process.lives, ms: scheduler.nowMs });
    },
    forMs: (process: string) => scheduler.nowMs - (since.get(process)?.ms ?? scheduler.nowMs),
  };
}
