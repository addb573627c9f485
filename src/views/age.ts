/** `12s`, `5m48s`, `3h20m`, `9d`: as kubectl writes ages, short enough for a column. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 120) return `${seconds}s`;
  const [minutes, hours, days] = [seconds / 60, seconds / 3_600, seconds / 86_400].map(Math.floor) as [
    number,
    number,
    number,
  ];
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  return hours < 48 ? `${hours}h` : `${days}d`;
}

function two(large: number, unit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${unit}` : `${large}${unit}${small}${smallUnit}`;
}

/** Empty where nobody knows since when. */
export function ageSince(sinceMs: number | undefined, nowMs: number): string {
  return sinceMs === undefined ? "" : formatAge(nowMs - sinceMs);
}
