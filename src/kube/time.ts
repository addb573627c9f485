import { KubeError } from "./errors.ts";

/**
 * The two kinds of time in API objects. `Time` (creationTimestamp, conditions) has whole seconds; `MicroTime`
 * (Lease, Event) has exactly six digits after the point, read or written. Both are RFC 3339, written in
 * UTC with a `Z`; any offset is understood.
 *
 * A Date counts milliseconds, so the last three digits of a MicroTime do not survive it. That is enough to
 * compare and to act on; whoever passes somebody else's value on uses `canonicalMicroTime`.
 */
export function parseTime(text: string): Date {
  const { instantMs } = parseInstant(text, "Time", /^\d+$/);
  return new Date(Math.floor(instantMs / 1000) * 1000);
}

/** Whole seconds; a fraction is dropped. */
export function formatTime(date: Date): string {
  return `${isoText(date).slice(0, 19)}Z`;
}

export function parseMicroTime(text: string): Date {
  return new Date(parseInstant(text, "MicroTime", /^\d{6}$/).instantMs);
}

export function formatMicroTime(date: Date): string {
  return `${isoText(date).slice(0, 23)}000Z`;
}

/** The same instant in UTC with all six digits kept: what a server stores and returns. */
export function canonicalMicroTime(text: string): string {
  const { instantMs, fraction } = parseInstant(text, "MicroTime", /^\d{6}$/);
  return `${isoText(new Date(instantMs)).slice(0, 19)}.${fraction}Z`;
}

const RFC3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/;

/** 9999-12-31 is the last day RFC 3339 can write; ISO text beyond it has a sign and more digits. */
const ISO_CHARS = 24;

function parseInstant(
  text: string,
  kind: string,
  fractionForm: RegExp,
): { instantMs: number; fraction: string } {
  const match = RFC3339.exec(text);
  const [, local = "", fraction = "", zone = ""] = match ?? [];
  const localMs = Date.parse(`${local}Z`);
  // Date.parse takes 30 February for 2 March; only a real day comes back as it went in.
  const isReal =
    match !== null && !Number.isNaN(localMs) && new Date(localMs).toISOString().startsWith(local);
  const offsetMs = offsetOf(zone);
  const isFraction = fraction === "" ? kind === "Time" : fractionForm.test(fraction);
  if (!isReal || !isFraction || offsetMs === undefined) {
    const form = kind === "Time" ? "2006-01-02T15:04:05Z" : "2006-01-02T15:04:05.000000Z";
    throw new KubeError(
      "BadInput",
      `parsing "${text.slice(0, 64)}" as ${kind}: it must be a real moment written like ${form}`,
    );
  }
  return { instantMs: localMs - offsetMs + Number(fraction.slice(0, 3).padEnd(3, "0")), fraction };
}

function offsetOf(zone: string): number | undefined {
  if (zone === "Z") return 0;
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(4, 6))];
  if (hours > 23 || minutes > 59) return undefined;
  return (zone.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

function isoText(date: Date): string {
  const text = Number.isNaN(date.getTime()) ? "" : date.toISOString();
  if (text.length !== ISO_CHARS) {
    throw new KubeError(
      "BadInput",
      `writing a time: the date must be in the years 0 to 9999, not ${String(date)}`,
    );
  }
  return text;
}
