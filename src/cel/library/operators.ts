import { compare, equal } from "../equality.ts";
import { evaluationError } from "../errors.ts";
import { declare, type Declaration, type Library, type Work } from "../functions.ts";
import { intResult, Uint, uintResult } from "../numbers.ts";
import { durationResult, timestampResult } from "../time.ts";
import type { Duration, Timestamp } from "../values.ts";
import { MapValue, NONE, OptionalValue, type Value } from "../values.ts";

const ORDERED = ["int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration"];
const NUMBERS = ["int", "uint", "double"];

/** Types of one kind, and numbers of different ones. */
function comparison(name: string, holds: (order: -1 | 0 | 1) => boolean): Declaration[] {
  const run = (a: Value, b: Value) => {
    const order = compare(a, b);
    return order !== undefined && holds(order);
  };
  const crossed = NUMBERS.flatMap((a) => NUMBERS.filter((b) => b !== a).map((b) => [a, b] as const));
  const pairs = [...ORDERED.map((type) => [type, type] as const), ...crossed];
  return pairs.map(([a, b]) => declare(`${name}(${a}, ${b}) bool`, run));
}

const ARITHMETIC: Library = [
  declare("_+_(int, int) int", (a: bigint, b: bigint) => intResult(a + b)),
  declare("_+_(uint, uint) uint", (a: Uint, b: Uint) => uintResult(a.value + b.value)),
  declare("_+_(double, double) double", (a: number, b: number) => a + b),
  declare("_+_(string, string) string", (a: string, b: string) => a + b),
  declare("_+_(bytes, bytes) bytes", (a: Uint8Array, b: Uint8Array) => Buffer.concat([a, b])),
  declare("_+_(list(A), list(A)) list(A)", (a: readonly Value[], b: readonly Value[]) => [...a, ...b]),
  declare("_+_(timestamp, duration) timestamp", (a: Timestamp, b: Duration) =>
    timestampResult(a.nanos + b.nanos),
  ),
  declare("_+_(duration, timestamp) timestamp", (a: Duration, b: Timestamp) =>
    timestampResult(a.nanos + b.nanos),
  ),
  declare("_+_(duration, duration) duration", (a: Duration, b: Duration) =>
    durationResult(a.nanos + b.nanos),
  ),

  declare("_-_(int, int) int", (a: bigint, b: bigint) => intResult(a - b)),
  declare("_-_(uint, uint) uint", (a: Uint, b: Uint) => uintResult(a.value - b.value)),
  declare("_-_(double, double) double", (a: number, b: number) => a - b),
  declare("_-_(timestamp, timestamp) duration", (a: Timestamp, b: Timestamp) =>
    durationResult(a.nanos - b.nanos),
  ),
  declare("_-_(timestamp, duration) timestamp", (a: Timestamp, b: Duration) =>
    timestampResult(a.nanos - b.nanos),
  ),
  declare("_-_(duration, duration) duration", (a: Duration, b: Duration) =>
    durationResult(a.nanos - b.nanos),
  ),

  declare("_*_(int, int) int", (a: bigint, b: bigint) => intResult(a * b)),
  declare("_*_(uint, uint) uint", (a: Uint, b: Uint) => uintResult(a.value * b.value)),
  declare("_*_(double, double) double", (a: number, b: number) => a * b),

  declare("_/_(int, int) int", (a: bigint, b: bigint) => intResult(a / divisor(b, "division by zero"))),
  declare(
    "_/_(uint, uint) uint",
    (a: Uint, b: Uint) => new Uint(a.value / divisor(b.value, "division by zero")),
  ),
  declare("_/_(double, double) double", (a: number, b: number) => a / b),

  declare("_%_(int, int) int", (a: bigint, b: bigint) => a % divisor(b, "modulus by zero")),
  declare(
    "_%_(uint, uint) uint",
    (a: Uint, b: Uint) => new Uint(a.value % divisor(b.value, "modulus by zero")),
  ),

  declare("-_(int) int", (a: bigint) => intResult(-a)),
  declare("-_(double) double", (a: number) => -a),
  declare("-_(duration) duration", (a: Duration) => durationResult(-a.nanos)),
];

/** Operators, as calls of functions that nobody can write otherwise. */
export const OPERATORS: Library = [
  ...ARITHMETIC,
  ...comparison("_<_", (order) => order < 0),
  ...comparison("_<=_", (order) => order <= 0),
  ...comparison("_>_", (order) => order > 0),
  ...comparison("_>=_", (order) => order >= 0),
  declare("_==_(A, A) bool", (a: Value, b: Value, work: Work) => equal(a, b, (steps) => work.charge(steps))),
  declare("_!=_(A, A) bool", (a: Value, b: Value, work: Work) => !equal(a, b, (steps) => work.charge(steps))),
  declare("!_(bool) bool", (a: boolean) => !a),

  declare("@in(A, list(A)) bool", (wanted: Value, list: readonly Value[], work: Work) =>
    list.some((item) => equal(wanted, item, (steps) => work.charge(steps))),
  ),
  declare("@in(A, map(A, B)) bool", (key: Value, map: MapValue) => map.get(key) !== undefined),

  declare("_[_](list(A), int) A", elementAt),
  // A number that a JSON parser read, or a sum of doubles: whole, or no index.
  declare("_[_](list(A), dyn) A", elementAt),
  declare("_[_](map(A, B), A) B", valueAt),
  declare("_[_](optional(list(A)), int) optional(A)", (optional: OptionalValue, index: Value) =>
    inOptional(optional, index),
  ),
  declare("_[_](optional(map(A, B)), A) optional(B)", (optional: OptionalValue, key: Value) =>
    inOptional(optional, key),
  ),
  declare("_[?_](list(A), int) optional(A)", optionalAt),
  declare("_[?_](map(A, B), A) optional(B)", optionalAt),
  declare("_[?_](optional(list(A)), int) optional(A)", inOptional),
  declare("_[?_](optional(map(A, B)), A) optional(B)", inOptional),
];

function divisor(value: bigint, otherwise: string): bigint {
  if (value === 0n) throw evaluationError(otherwise);
  return value;
}

function indexOf(index: Value): number {
  if (typeof index === "bigint") return Number(index);
  if (index instanceof Uint) return Number(index.value);
  if (typeof index === "number" && Number.isInteger(index)) return index;
  throw evaluationError("unsupported index type in list");
}

function elementAt(list: readonly Value[], index: Value): Value {
  const found = list[indexOf(index)];
  if (found === undefined) throw evaluationError(`index out of bounds: ${indexOf(index)}`);
  return found;
}

function valueAt(map: MapValue, key: Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const shown = typeof key === "string" || typeof key === "bigint" ? String(key) : "";
  throw evaluationError(`no such key: ${shown}`);
}

function optionalAt(from: readonly Value[] | MapValue, key: Value): OptionalValue {
  const found = from instanceof MapValue ? from.get(key) : from[indexOf(key)];
  return found === undefined ? NONE : new OptionalValue(found);
}

function inOptional({ value }: OptionalValue, key: Value): OptionalValue {
  if (value === undefined) return NONE;
  if (value instanceof MapValue || Array.isArray(value))
    return optionalAt(value as readonly Value[] | MapValue, key);
  throw evaluationError("no such overload");
}
