import { waitsIn } from "./coverage.ts";
import type { Observer } from "./run.ts";
import type { World } from "./world.ts";

/** A line for each wait that begins, with what it is for: why nothing happens. */
export class WaitLines implements Observer {
  #known = new Set<string>();

  onSecond(world: World): void {
    const seen = new Set<string>();
    for (const { process, volume, reason, message } of waitsIn(world)) {
      const key = `${process} ${volume ?? ""} ${reason}`;
      if (!this.#known.has(key) && !seen.has(key) && volume !== undefined)
        world.trace.addDetail(process, `waits with ${volume}: ${reason}: ${message ?? ""}`, {
          volume: volume.split(" ", 1)[0] ?? volume,
        });
      seen.add(key);
    }
    this.#known = seen;
  }
}
