import { InvalidArgumentError, Option } from "commander";

/** Milliseconds in each unit of Go's durations; `µ` comes in two spellings, as U+00B5 and U+03BC. */
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  "\u00b5s": 1e-3,
  "\u03bcs": 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** Go's longest, 2^63 ns: 292 years. */
const LONGEST_MS = 2 ** 63 / 1e6;

/**
 * A duration as Go writes it, in milliseconds: `300ms`, `1m0s`, `1.5h`, `0`. Undefined for anything else; in
 * particular a number alone has no unit, and days have no fixed length.
 */
export function parseDuration(text: string): number | undefined {
  if (/^[-+]?0$/.test(text)) return 0;
  const match = /^([-+]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/.exec(text);
  if (match === null) return undefined;
  let totalMs = 0;
  for (const [, amount, unit] of (match[2] ?? "").matchAll(/([\d.]+)([^\d.]+)/g)) {
    totalMs += Number(amount) * (UNIT_MS[unit ?? ""] ?? NaN);
  }
  if (!(totalMs < LONGEST_MS)) return undefined;
  return match[1] === "-" ? -totalMs : totalMs;
}

/** As Go prints it: `1m0s`, `15s`, `300ms`; what is below a millisecond is dropped. */
export function formatDuration(ms: number): string {
  const whole = Math.trunc(Math.abs(ms));
  const sign = ms < 0 && whole > 0 ? "-" : "";
  if (whole === 0) return "0s";
  if (whole < 1_000) return `${sign}${whole}ms`;
  const hours = Math.floor(whole / 3_600_000);
  const minutes = Math.floor(whole / 60_000) % 60;
  const seconds = `${(whole % 60_000) / 1_000}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** A flag whose value is a duration; the action gets milliseconds. */
export function durationOption(
  name: string,
  description: string,
  { defaultMs, minMs, why }: { readonly defaultMs: number; readonly minMs: number; readonly why: string },
): Option {
  return new Option(`--${name} <duration>`, description)
    .default(defaultMs, formatDuration(defaultMs))
    .argParser((text) => {
      const ms = parseDuration(text);
      if (ms === undefined) throw new InvalidArgumentError("Give a duration such as 300ms, 15s or 1m30s.");
      if (ms < minMs) throw new InvalidArgumentError(`It must be at least ${formatDuration(minMs)}: ${why}.`);
      return ms;
    });
}
