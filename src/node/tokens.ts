import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { ServiceAccountToken, TokenWanted } from "./objects.ts";
import { notIssued, notRenewed, refusalOf } from "./token-errors.ts";

/** Tokens of service accounts, asked for once and used until they are no longer young. */
export interface TokenCache {
  token(wanted: TokenWanted, signal: AbortSignal): Promise<ServiceAccountToken>;
  /** When the first of this pod's tokens wants replacing, in the clock's time; its volumes are refreshed then. */
  refreshAtMs(podUid: string): number | undefined;
  /** The pod is gone: so is the right to its tokens. */
  forget(podUid: string): void;
  readonly size: number;
}

interface Entry {
  readonly answer: ServiceAccountToken;
  readonly podUid: string;
  readonly refreshAtMs: number;
  readonly expiresAtMs: number;
}

/** A token is replaced after this part of its life, and once a day however long it lives: so says the API. */
const YOUNG_PART = 0.8;
const YOUNG_MS_MAX = 24 * 3_600_000;
/** Nodes that start at once must not ask at once a day later. */
const JITTER_MS = 10_000;
/** What has expired is dropped when the next token is stored and a minute has passed; nothing else grows here. */
const PURGE_EVERY_MS = 60_000;

/** `create` is one TokenRequest to the server. One pod with three tokens holds three entries, until it is forgotten. */
export function createTokenCache(
  { clock, random, log }: { readonly clock: Clock; readonly random: Random; readonly log: Logger },
  create: (wanted: TokenWanted, signal: AbortSignal) => Promise<ServiceAccountToken>,
): TokenCache {
  const entries = new Map<string, Entry>();
  let purgeAtMs = 0;

  async function token(wanted: TokenWanted, signal: AbortSignal): Promise<ServiceAccountToken> {
    const key = keyOf(wanted);
    const held = entries.get(key);
    if (held !== undefined && clock.now() < held.refreshAtMs) return held.answer;
    try {
      const answer = await create(wanted, signal);
      store(key, wanted, answer);
      return answer;
    } catch (error) {
      if (signal.aborted) throw error;
      if (held === undefined) throw notIssued(wanted, error);
      const { expirationTimestamp } = held.answer;
      if (clock.now() >= held.expiresAtMs) throw notRenewed(wanted, expirationTimestamp, error);
      // An old token is as good as a new one until it ends; the next refresh asks again.
      log.warn("token not renewed; the old one is used until it expires", {
        ...fieldsOf(wanted),
        expires: expirationTimestamp,
        leftMs: held.expiresAtMs - clock.now(),
        why: refusalOf(error),
        error,
      });
      return held.answer;
    }
  }

  function store(key: string, wanted: TokenWanted, answer: ServiceAccountToken): void {
    purge();
    const nowMs = clock.now();
    const leftMs = Date.parse(answer.expirationTimestamp) - clock.wall().getTime();
    const lifeMs = Math.max(0, leftMs) || 0;
    // Used all the same: whoever is given it has a clock of its own. But it is asked for anew at every turn.
    if (lifeMs === 0)
      log.warn("the server gave a token that this node's clock says has expired; compare their clocks", {
        ...fieldsOf(wanted),
        expires: answer.expirationTimestamp,
        now: clock.wall().toISOString(),
      });
    const youngMs = Math.min(lifeMs * YOUNG_PART, YOUNG_MS_MAX) - random.float() * JITTER_MS;
    entries.set(key, {
      answer,
      podUid: wanted.pod.uid,
      refreshAtMs: nowMs + Math.max(0, youngMs),
      expiresAtMs: nowMs + lifeMs,
    });
  }

  function purge(): void {
    const nowMs = clock.now();
    if (nowMs < purgeAtMs) return;
    purgeAtMs = nowMs + PURGE_EVERY_MS;
    for (const [key, { expiresAtMs }] of entries) if (expiresAtMs <= nowMs) entries.delete(key);
  }

  return {
    token,
    refreshAtMs(podUid) {
      const due = [...entries.values()]
        .filter((entry) => entry.podUid === podUid)
        .map((entry) => entry.refreshAtMs);
      return due.length === 0 ? undefined : Math.min(...due);
    },
    forget(podUid) {
      for (const [key, entry] of entries) if (entry.podUid === podUid) entries.delete(key);
    },
    get size() {
      return entries.size;
    },
  };
}

function fieldsOf({ namespace, serviceAccount, audiences, pod }: TokenWanted) {
  return { namespace, serviceAccount, audiences, pod: pod.name };
}

function keyOf({ namespace, serviceAccount, audiences, expirationSeconds, pod }: TokenWanted): string {
  return JSON.stringify([namespace, serviceAccount, audiences, expirationSeconds ?? null, pod.name, pod.uid]);
}
