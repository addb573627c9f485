import type { Clock } from "../base/clock.ts";
import type { HealthCheck } from "./health.ts";

/** Notices when timers no longer fire although requests are still answered: nothing with a deadline works then. */
export interface Heartbeat {
  readonly check: HealthCheck;
  run(signal: AbortSignal): Promise<void>;
}

const BEAT_MS = 5_000;
/** A list of 100,000 pods blocks for 2 s; a process that was frozen catches up with its first beat. */
const LATE_MS = 30_000;

export function createHeartbeat(clock: Clock): Heartbeat {
  let beatAtMs = clock.now();
  return {
    check: {
      name: "event-loop",
      problem() {
        const silentMs = clock.now() - beatAtMs;
        return silentMs <= LATE_MS ? undefined : `no timer has fired for ${Math.round(silentMs / 1_000)} s`;
      },
    },
    async run(signal) {
      while (!signal.aborted) {
        beatAtMs = clock.now();
        // A sleep rejects on abort, which is how this ends.
        await clock.sleep(BEAT_MS, signal).catch(() => undefined);
      }
    },
  };
}
