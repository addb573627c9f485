import type { Evidence, Finding, Reason } from "./reasons/reasons.ts";

/** A finding about something that is no volume of a pod: a workload, a snapshot, a class or a driver. */
export function told(
  reason: Reason,
  names: Readonly<Record<string, string>>,
  known: { readonly evidence: readonly Evidence[]; readonly sinceMs?: number | undefined },
): Finding {
  return { reason, names, ...known };
}

/** `a, b, c and 9 more`: as many names as a line takes. */
export function someOf(names: readonly string[], max = 3): string {
  const shown = names.slice(0, max).join(", ");
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}

/** `1 claim`, `3 claims`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
