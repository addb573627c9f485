import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Metrics } from "../base/metrics.ts";
import type { Random } from "../base/random.ts";
import type { Client } from "../kube/client/client.ts";
import type { EventRecorder } from "../kube/events/events.ts";
import type { StorageCaches } from "./caches.ts";

/** What every companion of this half needs of the world. */
export interface StorageDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly events: Pick<EventRecorder, "record">;
}

export interface CachedDeps extends StorageDeps {
  readonly caches: StorageCaches;
}

/** Something that works until its signal aborts. */
export interface Companion {
  run(signal: AbortSignal): Promise<void>;
}
