import { assert } from "../../base/assert.ts";

/** A rate with a burst, as `--kube-api-qps` and `--kube-api-burst` mean it (pure). */
export interface TokenBucket {
  readonly qps: number;
  readonly burst: number;
  /** May be negative: requests that already have a time to start. */
  readonly tokens: number;
  readonly atMs: number;
}

export function createTokenBucket(qps: number, burst: number, nowMs: number): TokenBucket {
  assert(qps > 0 && burst >= 1, `qps ${qps} must be above 0 and burst ${burst} at least 1`);
  return { qps, burst, tokens: burst, atMs: nowMs };
}

/** Takes one token; `waitMs` is how long its owner has to wait for it. */
export function takeToken(bucket: TokenBucket, nowMs: number): { bucket: TokenBucket; waitMs: number } {
  const earned = ((nowMs - bucket.atMs) / 1000) * bucket.qps;
  const tokens = Math.min(bucket.burst, bucket.tokens + earned) - 1;
  return {
    bucket: { ...bucket, tokens, atMs: nowMs },
    waitMs: tokens >= 0 ? 0 : (-tokens / bucket.qps) * 1000,
  };
}

/** Gives one back: its owner left before its turn. */
export function returnToken(bucket: TokenBucket): TokenBucket {
  return { ...bucket, tokens: Math.min(bucket.burst, bucket.tokens + 1) };
}
