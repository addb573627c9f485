import { sleepWith, type Clock, type Timer } from "./clock.ts";
import { TimerHeap } from "./timers.ts";

/** setTimeout fires at once for anything above this (2^31 - 1 ms, 24.8 days); longer waits go in legs. */
const LONGEST_ALARM_MS = 2 ** 31 - 1;

/** The operating system's time. One of the few places that may ask for it. */
export function createSystemClock(): Clock {
  const timers = new TimerHeap();
  let alarm: NodeJS.Timeout | undefined;
  let alarmAtMs = Infinity;

  const now = () => performance.now();

  function arm(): void {
    const nextAtMs = timers.nextAtMs ?? Infinity;
    if (nextAtMs === alarmAtMs) return;
    clearTimeout(alarm);
    alarmAtMs = nextAtMs;
    if (nextAtMs === Infinity) return;
    alarm = setTimeout(fire, Math.min(Math.max(0, Math.ceil(nextAtMs - now())), LONGEST_ALARM_MS));
  }

  function fire(): void {
    alarmAtMs = Infinity;
    // Due as of one reading of the clock: a callback that sets a timer of 0 ms runs in the next turn.
    const dueMs = now();
    for (let run = timers.takeDue(dueMs); run !== undefined; run = timers.takeDue(dueMs)) run();
    arm();
  }

  function after(ms: number, callback: () => void): Timer {
    const timer = timers.add(now() + Math.max(0, ms), callback);
    arm();
    return {
      cancel() {
        timer.cancel();
        // Disarming lets a process with nothing else to do end.
        arm();
      },
    };
  }

  return { now, wall: () => new Date(), after, sleep: (ms, signal) => sleepWith(after, ms, signal) };
}
