import { setMaxListeners } from "node:events";
import { abortReason, type Clock, type Timer } from "../base/clock.ts";

/** Two ends of one stop: `signal` ends the taking of new work, `cut` ends the work. */
export interface Stop {
  readonly signal: AbortSignal;
  readonly cut: AbortSignal;
}

/**
 * What is under way when the end is asked for may come to its own end: a publish that is cut off has to be repeated by the
 * next process, and its pod waits that much longer. After `drainMs` it is cut off all the same; and at once where nothing
 * may be written any more, because another replica leads.
 */
export function createDrain(
  { clock, mayAct }: { readonly clock: Clock; readonly mayAct: () => boolean },
  drainMs: number,
  signal: AbortSignal,
): { readonly cut: AbortSignal; end(): void } {
  const cut = new AbortController();
  // Every pass listens to it, and every request of one.
  setMaxListeners(0, cut.signal);
  let timer: Timer | undefined;
  const onStop = () => {
    if (!mayAct()) cut.abort(abortReason(signal));
    else timer = clock.after(drainMs, () => cut.abort(abortReason(signal)));
  };
  if (signal.aborted) onStop();
  else signal.addEventListener("abort", onStop, { once: true });
  return {
    cut: cut.signal,
    end() {
      signal.removeEventListener("abort", onStop);
      timer?.cancel();
    },
  };
}
