/**
 * How long ago, in as many characters as a column of `kubectl get` has room for: two units while the
 * smaller one still tells something, one after that.
 */
export function ageText(elapsedMs: number): string {
  const seconds = Math.trunc(elapsedMs / 1_000);
  // Clocks of two machines differ a little: what was made "in the future" by less than two seconds was made now.
  if (seconds < -1) return "<invalid>";
  if (seconds < 2 * MINUTE) return `${Math.max(seconds, 0)}s`;
  for (const { below, unit, label, minor } of SCALES) {
    if (seconds < below) return `${Math.floor(seconds / unit)}${label}${minorText(seconds % unit, minor)}`;
  }
  return `${Math.floor(seconds / YEAR)}y`;
}

/** The age of a moment written in RFC 3339; `<unknown>` for no moment at all. */
export function ageOf(timestamp: string, nowMs: number): string {
  const thenMs = Date.parse(timestamp);
  return Number.isNaN(thenMs) ? "<unknown>" : ageText(nowMs - thenMs);
}

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

interface Scale {
  readonly below: number;
  readonly unit: number;
  readonly label: string;
  readonly minor?: { readonly unit: number; readonly label: string };
}

const SCALES: readonly Scale[] = [
  { below: 10 * MINUTE, unit: MINUTE, label: "m", minor: { unit: 1, label: "s" } },
  { below: 3 * HOUR, unit: MINUTE, label: "m" },
  { below: 8 * HOUR, unit: HOUR, label: "h", minor: { unit: MINUTE, label: "m" } },
  { below: 2 * DAY, unit: HOUR, label: "h" },
  { below: 8 * DAY, unit: DAY, label: "d", minor: { unit: HOUR, label: "h" } },
  { below: 2 * YEAR, unit: DAY, label: "d" },
  { below: 8 * YEAR, unit: YEAR, label: "y", minor: { unit: DAY, label: "d" } },
];

function minorText(restSeconds: number, minor: Scale["minor"]): string {
  const count = minor === undefined ? 0 : Math.floor(restSeconds / minor.unit);
  return count === 0 || minor === undefined ? "" : `${count}${minor.label}`;
}
