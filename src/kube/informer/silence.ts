import { abortReason, type Clock } from "../../base/clock.ts";
import { KubeError } from "../errors.ts";

/**
 * Cuts off a stream that has gone silent. A connection whose other end vanished without a word (a pulled
 * cable, a dropped NAT entry, a frozen server) looks exactly like one with nothing to say; only time tells.
 */
export interface SilenceGuard {
  /** Aborts with the outer signal, or when nothing was heard for too long. */
  readonly signal: AbortSignal;
  readonly silent: boolean;
  heard(): void;
  stop(): void;
}

/** `allowedMs` is asked whenever it matters, because what is allowed may change during the stream. */
export function createSilenceGuard(clock: Clock, outer: AbortSignal, allowedMs: () => number): SilenceGuard {
  const controller = new AbortController();
  let heardAtMs = clock.now();
  let silent = false;
  let timer = clock.after(allowedMs(), check);

  function check(): void {
    const restMs = heardAtMs + allowedMs() - clock.now();
    // One timer that looks again, rather than one set anew a chunk: a busy watch brings thousands a second.
    if (restMs > 0) {
      timer = clock.after(restMs, check);
      return;
    }
    silent = true;
    controller.abort(
      new KubeError("DeadlineExceeded", `watch: silent for ${allowedMs() / 1000} s; it is resumed`),
    );
  }

  const onAbort = () => controller.abort(abortReason(outer));
  if (outer.aborted) onAbort();
  else outer.addEventListener("abort", onAbort, { once: true });

  return {
    signal: controller.signal,
    get silent() {
      return silent;
    },
    heard() {
      heardAtMs = clock.now();
    },
    stop() {
      timer.cancel();
      outer.removeEventListener("abort", onAbort);
    },
  };
}
