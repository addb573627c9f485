import { evaluationError } from "./errors.ts";
import { INT_MAX, INT_MIN } from "./numbers.ts";
import { Duration, Timestamp } from "./values.ts";

const NANOS_PER_SECOND = 1_000_000_000n;
const NANOS_PER_MILLI = 1_000_000n;
/** 0001-01-01T00:00:00Z to the last nanosecond of 9999. */
const TIMESTAMP_NANOS_MIN = -62_135_596_800n * NANOS_PER_SECOND;
const TIMESTAMP_NANOS_MAX = 253_402_300_800n * NANOS_PER_SECOND - 1n;

export function timestampResult(nanos: bigint): Timestamp {
  if (nanos < TIMESTAMP_NANOS_MIN || nanos > TIMESTAMP_NANOS_MAX) throw evaluationError("timestamp overflow");
  return new Timestamp(nanos);
}

/** Within 64 bits of nanoseconds, which is 292 years. */
export function durationResult(nanos: bigint): Duration {
  if (nanos < INT_MIN || nanos > INT_MAX) throw evaluationError("duration overflow");
  return new Duration(nanos);
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d+))?([Zz]|[+-]\d{2}:\d{2})$/;

export function parseTimestamp(text: string): Timestamp {
  const match = RFC3339.exec(text);
  const [, date = "", time = "", fraction = "", zone = ""] = match ?? [];
  const ms = match === null ? NaN : Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(ms) || !isCalendarDate(date)) {
    throw evaluationError(`invalid timestamp: ${JSON.stringify(text)} is not of RFC 3339`);
  }
  return timestampResult(BigInt(ms) * NANOS_PER_MILLI + BigInt(fraction.slice(0, 9).padEnd(9, "0")));
}

/** JavaScript takes the 31st of June for the 1st of July. */
function isCalendarDate(date: string): boolean {
  const day = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(date);
}

export function formatTimestamp({ nanos }: Timestamp): string {
  const seconds = floorDivide(nanos, NANOS_PER_SECOND);
  const rest = nanos - seconds * NANOS_PER_SECOND;
  const date = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  return `${date}${fractionOf(rest)}Z`;
}

export function formatDuration({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? "-" : "";
  return `${sign}${size / NANOS_PER_SECOND}${fractionOf(size % NANOS_PER_SECOND)}s`;
}

function fractionOf(nanos: bigint): string {
  return nanos === 0n ? "" : `.${String(nanos).padStart(9, "0").replace(/0+$/, "")}`;
}

const UNIT_NANOS: ReadonlyMap<string, bigint> = new Map([
  ["h", 3_600n * NANOS_PER_SECOND],
  ["m", 60n * NANOS_PER_SECOND],
  ["s", NANOS_PER_SECOND],
  ["ms", NANOS_PER_MILLI],
  ["us", 1_000n],
  ["µs", 1_000n],
  ["ns", 1n],
]);
const DURATION = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|s|us|µs|ns))+|0)$/;
const DURATION_PART = /(\d*)(?:\.(\d*))?(h|ms|m|s|us|µs|ns)/g;

/** As Go writes them: `1h30m`, `-1.5s`. */
export function parseDuration(text: string): Duration {
  const match = text.length > 64 ? null : DURATION.exec(text);
  if (match === null) throw evaluationError(`invalid duration: ${JSON.stringify(text.slice(0, 64))}`);
  let nanos = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of (match[2] ?? "").matchAll(DURATION_PART)) {
    const size = UNIT_NANOS.get(unit) ?? 0n;
    nanos += BigInt(whole || "0") * size;
    nanos += (BigInt(fraction || "0") * size) / 10n ** BigInt(fraction.length);
  }
  return durationResult(match[1] === "-" ? -nanos : nanos);
}

/** Fields of a moment, as clocks in a time zone show it. */
export interface WallTime {
  readonly year: number;
  /** From 0. */
  readonly month: number;
  readonly day: number;
  /** Sunday is 0. */
  readonly weekday: number;
  /** From 0. */
  readonly dayOfYear: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly millis: number;
}

export function wallTime({ nanos }: Timestamp, zone: string): WallTime {
  const ms = Number(floorDivide(nanos, NANOS_PER_MILLI));
  const shown = new Date(ms + offsetMs(ms, zone));
  const year = shown.getUTCFullYear();
  const newYear = new Date(0).setUTCFullYear(year, 0, 1);
  return {
    year,
    month: shown.getUTCMonth(),
    day: shown.getUTCDate(),
    weekday: shown.getUTCDay(),
    dayOfYear: Math.floor((shown.getTime() - newYear) / 86_400_000),
    hours: shown.getUTCHours(),
    minutes: shown.getUTCMinutes(),
    seconds: shown.getUTCSeconds(),
    millis: shown.getUTCMilliseconds(),
  };
}

const OFFSET = /^([+-]?)(\d{1,2}):(\d{2})$/;

/** How far ahead of UTC the zone is at that time. */
function offsetMs(ms: number, zone: string): number {
  if (zone === "" || zone === "UTC") return 0;
  const match = OFFSET.exec(zone);
  if (match !== null) {
    const [, sign, hours, minutes] = match;
    return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  }
  const wholeMs = Math.floor(ms / 1_000) * 1_000;
  const parts = Object.fromEntries(
    formatterOf(zone)
      .formatToParts(wholeMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - wholeMs;
}

/** Making one takes 0.1 ms; there are some 400 zones, and an expression that names unknown ones keeps none. */
const formatters = new Map<string, Intl.DateTimeFormat>();

function formatterOf(zone: string): Intl.DateTimeFormat {
  let found = formatters.get(zone);
  if (found === undefined) {
    try {
      found = new Intl.DateTimeFormat("en-US", {
        timeZone: zone,
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
      });
    } catch {
      throw evaluationError(`unknown time zone ${zone}`);
    }
    formatters.set(zone, found);
  }
  return found;
}

function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n ? quotient - 1n : quotient;
}
