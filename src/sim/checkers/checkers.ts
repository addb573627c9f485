import type { World } from "../world.ts";
import { watchAttachments } from "./attachments.ts";
import { watchContainers } from "./containers.ts";
import { watchPublishes } from "./published-once.ts";
import { watchStatus } from "./node-status.ts";
import { watchUnpublishes } from "./unpublished.ts";
import { watchWriters } from "./writers.ts";

/** What must hold at every instant, whatever is planned. Each writes down what it saw broken. */
export function watchEverything(world: World): void {
  watchPublishes(world);
  watchWriters(world);
  watchUnpublishes(world);
  watchStatus(world);
  watchContainers(world);
  watchAttachments(world);
}
