import { evaluationError } from "./errors.ts";

/** A whole number without a sign. Ints are JavaScript's bigint, doubles its number. */
export class Uint {
  readonly value: bigint;

  constructor(value: bigint) {
    this.value = value;
  }
}

export const INT_MIN = -(2n ** 63n);
export const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;

/** Undefined where it has no room in 64 bits. */
export function toInt(value: bigint): bigint | undefined {
  return value >= INT_MIN && value <= INT_MAX ? value : undefined;
}

export function toUint(value: bigint): bigint | undefined {
  return value >= 0n && value <= UINT_MAX ? value : undefined;
}

/** The result of arithmetic; CEL has no wrapping around. */
export function intResult(value: bigint): bigint {
  if (value < INT_MIN || value > INT_MAX) throw evaluationError("integer overflow");
  return value;
}

export function uintResult(value: bigint): Uint {
  if (value < 0n || value > UINT_MAX) throw evaluationError("unsigned integer overflow");
  return new Uint(value);
}

/**
 * A double as a whole number, cut off towards zero. The real evaluator takes none at the very ends of the range, where
 * neighbouring doubles are 1,024 apart and rounding may have gone beyond it.
 */
export function doubleToWhole(value: number): bigint {
  if (!Number.isFinite(value)) throw evaluationError("integer overflow");
  return BigInt(Math.trunc(value));
}

export type NumberValue = bigint | number | Uint;

export function isNumber(value: unknown): value is NumberValue {
  return typeof value === "bigint" || typeof value === "number" || value instanceof Uint;
}

/**
 * By what they stand for; undefined with NaN. Whole numbers exactly; a whole number and a double as doubles, as the
 * language has it: 9007199254740993 equals 9007199254740992.0.
 */
export function compareNumbers(a: NumberValue, b: NumberValue): -1 | 0 | 1 | undefined {
  const [left, right] = [plain(a), plain(b)];
  if (typeof left === "bigint" && typeof right === "bigint") return left < right ? -1 : left > right ? 1 : 0;
  const [x, y] = [Number(left), Number(right)];
  if (x < y) return -1;
  if (x > y) return 1;
  return x === y ? 0 : undefined;
}

function plain(value: NumberValue): bigint | number {
  return value instanceof Uint ? value.value : value;
}
