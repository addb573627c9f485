import type { Clock, Timer } from "../../base/clock.ts";

/**
 * Asks drivers again how many volumes the node may have, as often as their CSIDriver object says. Bounded: one timer a
 * registered driver. A question that fails is asked again when its next turn comes.
 */
export interface AllocatableRefresh {
  /** The driver, its registration or its CSIDriver object may have changed. */
  changed(driver: string): void;
  stop(): void;
}

interface Turn {
  readonly periodMs: number;
  timer: Timer;
}

export interface AllocatableDeps {
  readonly clock: Clock;
  /** Undefined for a driver that is not registered, or does not want to be asked. */
  readonly periodMsOf: (driver: string) => number | undefined;
  readonly refresh: (driver: string) => Promise<void>;
}

export function createAllocatableRefresh({
  clock,
  periodMsOf,
  refresh,
}: AllocatableDeps): AllocatableRefresh {
  const turns = new Map<string, Turn>();

  function start(driver: string, periodMs: number): void {
    const timer = clock.after(periodMs, () => {
      // The next turn begins when this one is over: a driver that takes longer than its period is asked once at a time.
      void refresh(driver).finally(() => {
        if (turns.get(driver)?.timer === timer) start(driver, periodMs);
      });
    });
    turns.set(driver, { periodMs, timer });
  }

  return {
    changed(driver) {
      const before = turns.get(driver);
      const periodMs = periodMsOf(driver);
      if (before?.periodMs === periodMs) return;
      before?.timer.cancel();
      turns.delete(driver);
      if (periodMs !== undefined) start(driver, periodMs);
    },
    stop() {
      for (const { timer } of turns.values()) timer.cancel();
      turns.clear();
    },
  };
}
