export interface Percentiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
}

export function percentilesOf(tookMs: readonly number[]): Percentiles {
  const sorted = [...tookMs].sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
  return { p50Ms: at(0.5), p99Ms: at(0.99), count: sorted.length };
}
