import { noSuchOverload } from "./errors.ts";
import { compareNumbers, isNumber } from "./numbers.ts";
import {
  Duration,
  isList,
  MapValue,
  ObjectValue,
  OpaqueValue,
  OptionalValue,
  Timestamp,
  TypeValue,
  type Value,
} from "./values.ts";

/** Counts work; throws when there has been too much of it. */
export type Charge = (steps: number) => void;

/** Values of different types are unequal, only numbers are compared by what they stand for. */
export function equal(a: Value, b: Value, charge: Charge): boolean {
  charge(1);
  if (isNumber(a)) return isNumber(b) && compareNumbers(a, b) === 0;
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (isList(a)) return isList(b) && equalLists(a, b, charge);
  if (a instanceof MapValue) return b instanceof MapValue && equalMaps(a, b, charge);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && compareBytes(a, b) === 0;
  if (a instanceof Timestamp) return b instanceof Timestamp && a.nanos === b.nanos;
  if (a instanceof Duration) return b instanceof Duration && a.nanos === b.nanos;
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name;
  if (a instanceof OptionalValue) return b instanceof OptionalValue && equalOptionals(a, b, charge);
  if (a instanceof ObjectValue) return b instanceof ObjectValue && equalObjects(a, b, charge);
  if (a instanceof OpaqueValue) return b instanceof OpaqueValue && a.type === b.type && a.equals(b);
  return false;
}

function equalLists(a: readonly Value[], b: readonly Value[], charge: Charge): boolean {
  return a.length === b.length && a.every((item, index) => equal(item, b[index] ?? null, charge));
}

function equalMaps(a: MapValue, b: MapValue, charge: Charge): boolean {
  if (a.size !== b.size) return false;
  for (const key of a.keys()) {
    const [left, right] = [a.get(key), b.get(key)];
    if (left === undefined || right === undefined || !equal(left, right, charge)) return false;
  }
  return true;
}

function equalOptionals({ value: a }: OptionalValue, { value: b }: OptionalValue, charge: Charge): boolean {
  return a === undefined || b === undefined ? a === b : equal(a, b, charge);
}

function equalObjects(a: ObjectValue, b: ObjectValue, charge: Charge): boolean {
  if (a.type !== b.type || a.fields.size !== b.fields.size) return false;
  return [...a.fields].every(([name, value]) => {
    const other = b.fields.get(name);
    return other !== undefined && equal(value, other, charge);
  });
}

/** Below, the same or above; undefined with NaN. Throws where the two have no order. */
export function compare(a: Value, b: Value): -1 | 0 | 1 | undefined {
  if (isNumber(a) && isNumber(b)) return compareNumbers(a, b);
  if (typeof a === "string" && typeof b === "string") return compareTexts(a, b);
  if (typeof a === "boolean" && typeof b === "boolean") return sign(Number(a) - Number(b));
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  if (a instanceof Timestamp && b instanceof Timestamp) return compareNumbers(a.nanos, b.nanos);
  if (a instanceof Duration && b instanceof Duration) return compareNumbers(a.nanos, b.nanos);
  throw noSuchOverload();
}

/** By code points; JavaScript compares halves of those above U+FFFF. */
function compareTexts(a: string, b: string): -1 | 0 | 1 {
  if (a === b) return 0;
  const hasPairs = /[\ud800-\udfff]/;
  if (!hasPairs.test(a) && !hasPairs.test(b)) return a < b ? -1 : 1;
  return compareBytes(Buffer.from(a, "utf8"), Buffer.from(b, "utf8"));
}

function compareBytes(a: Uint8Array, b: Uint8Array): -1 | 0 | 1 {
  return sign(Buffer.compare(a, b));
}

function sign(difference: number): -1 | 0 | 1 {
  return difference < 0 ? -1 : difference > 0 ? 1 : 0;
}
