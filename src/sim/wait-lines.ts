import { reportedWaits } from "./reported-waits.ts";
import type { Observer } from "./run.ts";
import type { World } from "./world.ts";

/** A line for each wait that begins, with what it is for: why nothing happens. */
export class WaitLines implements Observer {
  #known = new Set<string>();

  onSecond(world: World): void {
    const seen = new Set<string>();
    for (const { process, handle, node, reason, message } of reportedWaits(world)) {
      const volume = node === process ? handle : `${handle} on ${node}`;
      const key = `${process} ${volume} ${reason}`;
      if (!this.#known.has(key) && !seen.has(key))
        world.trace.addDetail(process, `waits with ${volume}: ${reason}: ${message}`, { volume: handle });
      seen.add(key);
    }
    this.#known = seen;
  }
}
