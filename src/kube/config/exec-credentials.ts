import { backoffMs } from "../../base/backoff.ts";
import { abortable, type Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Credential, Credentials } from "../transport/access.ts";
import { KubeError } from "../errors.ts";

/** What one run of a plugin gave. */
export interface ExecAnswer {
  readonly credential: Credential;
  /** Wall time; absent means until the server rejects it. */
  readonly expiresAtMs?: number | undefined;
}

/** How long before its end a credential is renewed in the background: cloud plugins take 1 to 5 s. */
const EARLY_MS_MAX = 60_000;

/** A plugin whose answer is already over (a wrong clock, a cache of its own) is still asked only this often. */
const HOLD_MS = 10_000;

/** A broken plugin is run this often and no more, however many requests want to leave. */
const RETRY = { initialMs: 1_000, maxMs: 60_000 };

/** A credential that the server accepted for this long was good; its rejection is not the plugin's fault. */
const PROVEN_MS = 60_000;

/**
 * Answers of an exec plugin, kept until they expire or the server rejects them.
 *
 * Callers may rely on:
 * - at most one run at a time, shared by all who wait; a caller that gives up does not end it;
 * - no request waits for the plugin while the credential at hand is good: it is renewed early, in the background;
 * - after a failed run, or a run whose answer the server rejects too, the next waits 1 s, 2 s, 4 s … 60 s.
 */
export function createExecCredentials(
  { clock, log }: { clock: Clock; log: Logger },
  { name, run }: { name: string; run: () => Promise<ExecAnswer> },
): Credentials {
  let held: HeldAnswer | undefined;
  let running: Promise<Credential> | undefined;
  let failures = 0;
  let notBeforeMs = -Infinity;
  let lastFailure: unknown;
  let disliked = false;
  let rejections = 0;
  let noRunForRejectionBeforeMs = -Infinity;

  async function runOnce(): Promise<Credential> {
    try {
      const answer = await run();
      held = hold(answer, clock);
      disliked = false;
      failures = 0;
      log.debug("credential plugin answered", { plugin: name, expires: toTimestamp(answer.expiresAtMs) });
      return answer.credential;
    } catch (error) {
      lastFailure = error;
      const retryMs = backoffMs(++failures, RETRY);
      notBeforeMs = clock.now() + retryMs;
      log.warn("credential plugin failed", { plugin: name, error, retryMs });
      throw error;
    } finally {
      running = undefined;
    }
  }

  function refresh(): Promise<Credential> {
    running ??= runOnce();
    return running;
  }

  return {
    async current(signal) {
      const state = judge(held, clock);
      if (held !== undefined && state !== "over") {
        // Nobody waits for an early run, so nobody sees it fail: it was logged, and the next one tries again.
        if (state === "ageing" && clock.now() >= notBeforeMs) refresh().catch(() => undefined);
        return held.credential;
      }
      if (running === undefined && clock.now() < notBeforeMs)
        throw stillFailing(lastFailure, notBeforeMs - clock.now());
      return abortable(refresh(), signal);
    },
    rejected(credential) {
      if (held?.credential !== credential) return true;
      const wasProven = !disliked && clock.now() - held.receivedMs >= PROVEN_MS;
      disliked = true;
      if (clock.now() < noRunForRejectionBeforeMs) return false;
      rejections = wasProven ? 1 : rejections + 1;
      noRunForRejectionBeforeMs = clock.now() + backoffMs(rejections, RETRY);
      held = undefined;
      return true;
    },
  };
}

interface HeldAnswer extends ExecAnswer {
  readonly receivedMs: number;
  readonly earlyMs: number;
}

function hold(answer: ExecAnswer, clock: Clock): HeldAnswer {
  const lifeMs = Math.max(0, (answer.expiresAtMs ?? Infinity) - clock.wall().getTime());
  // A fifth of a short life, so that a token of 50 s is not renewed all the time.
  return { ...answer, receivedMs: clock.now(), earlyMs: Math.min(EARLY_MS_MAX, lifeMs / 5) };
}

type Judgement = "good" | "ageing" | "over";

function judge(held: HeldAnswer | undefined, clock: Clock): Judgement {
  if (held === undefined) return "over";
  if (held.expiresAtMs === undefined || clock.now() - held.receivedMs < HOLD_MS) return "good";
  const leftMs = held.expiresAtMs - clock.wall().getTime();
  if (leftMs > held.earlyMs) return "good";
  return leftMs > 0 ? "ageing" : "over";
}

function stillFailing(failure: unknown, waitMs: number): KubeError {
  const reason = failure instanceof Error ? failure.message.replace(/^BadConfig: /, "") : String(failure);
  return new KubeError("BadConfig", `${reason}; next try in ${Math.ceil(waitMs / 1_000)} s`, {
    cause: failure,
  });
}

function toTimestamp(wallMs: number | undefined): string | undefined {
  return wallMs === undefined ? undefined : new Date(wallMs).toISOString();
}
