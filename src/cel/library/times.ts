import { declare, type Library } from "../functions.ts";
import { wallTime, type WallTime } from "../time.ts";
import type { Duration, Timestamp } from "../values.ts";

const FIELDS: Readonly<Record<string, (time: WallTime) => number>> = {
  getFullYear: ({ year }) => year,
  getMonth: ({ month }) => month,
  getDayOfYear: ({ dayOfYear }) => dayOfYear,
  getDate: ({ day }) => day,
  getDayOfMonth: ({ day }) => day - 1,
  getDayOfWeek: ({ weekday }) => weekday,
  getHours: ({ hours }) => hours,
  getMinutes: ({ minutes }) => minutes,
  getSeconds: ({ seconds }) => seconds,
  getMilliseconds: ({ millis }) => millis,
};

/** Of a duration: all of it in that unit, only milliseconds are those beyond the last second. */
const NANOS: Readonly<Record<string, bigint>> = {
  getHours: 3_600_000_000_000n,
  getMinutes: 60_000_000_000n,
  getSeconds: 1_000_000_000n,
};

/** Parts of timestamps, in UTC or a zone, and of durations. */
export const TIMES: Library = [
  ...Object.entries(FIELDS).flatMap(([name, field]) => [
    declare(`timestamp -> ${name}() int`, (time: Timestamp) => BigInt(field(wallTime(time, "")))),
    declare(`timestamp -> ${name}(string) int`, (time: Timestamp, zone: string) =>
      BigInt(field(wallTime(time, zone))),
    ),
  ]),
  ...Object.entries(NANOS).map(([name, unit]) =>
    declare(`duration -> ${name}() int`, ({ nanos }: Duration) => nanos / unit),
  ),
  declare(
    "duration -> getMilliseconds() int",
    ({ nanos }: Duration) => (nanos % 1_000_000_000n) / 1_000_000n,
  ),
];
