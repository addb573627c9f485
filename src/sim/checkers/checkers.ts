import type { World } from "../world.ts";
import { watchAcknowledged } from "./acknowledged.ts";
import { watchAttachments } from "./attachments.ts";
import { watchContainers } from "./containers.ts";
import { watchCopies } from "./copies.ts";
import { watchFullPool } from "./full-pool.ts";
import { watchMadeByHand } from "./made-by-hand.ts";
import { watchPublishes } from "./published-once.ts";
import { watchStatus } from "./node-status.ts";
import { watchUnpublishes } from "./unpublished.ts";
import { watchWaitingReasons } from "./waiting-reasons.ts";
import { watchWhy } from "./why.ts";
import { watchWriters } from "./writers.ts";

export interface Judged {
  /** `why` was asked about a pod that does not run, and its answer, which has this reason, was judged. */
  readonly onAnswer?: ((reason: string) => void) | undefined;
}

/**
 * What must hold at every instant, whatever is planned. Each writes down what it saw broken. Answers what has to be called about
 * once a simulated second: it adds no timer, so that a run is the same with it and without.
 */
export function watchEverything(world: World, { onAnswer }: Judged = {}): () => void {
  watchPublishes(world);
  watchWriters(world);
  watchUnpublishes(world);
  watchStatus(world);
  watchContainers(world);
  watchAttachments(world);
  watchMadeByHand(world);
  watchCopies(world);
  watchFullPool(world);
  const looks = [watchAcknowledged(world), watchWaitingReasons(world), watchWhy(world, onAnswer)];
  return () => {
    for (const look of looks) look();
  };
}
