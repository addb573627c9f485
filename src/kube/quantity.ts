import { KubeError } from "./errors.ts";

/**
 * Amounts with a unit: `1536Mi`, `500m`, `12e6`. A quantity is a whole number of nano-units, which is as
 * fine as the API goes, and the family of suffixes it is written with. Whole numbers of any size, never
 * floats: 9007199254740993 bytes must not become 9007199254740992.
 */
export interface Quantity {
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

/** Powers of 1024 (`Gi`), powers of 1000 (`G`), or an exponent (`e9`). */
export type QuantityFormat = "BinarySI" | "DecimalSI" | "DecimalExponent";

/**
 * Bounds on what is read: 128 characters hold any value below 10^100 down to its nano-units. `1e999999999` is
 * nine letters that would otherwise ask for a number of 400 MB.
 */
const TEXT_CHARS_MAX = 128;
const EXPONENT_MAX = 128;
const NANOS_LIMIT = 10n ** 109n;

const NANOS_PER_UNIT = 1_000_000_000n;
const NANOS_PER_MILLI = 1_000_000n;

/** Binary quantities stop here, silently, in the real library: `10Ei` is 9223372036854775807. */
const BINARY_NANOS_MAX = (2n ** 63n - 1n) * NANOS_PER_UNIT;

const FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
// Digits may be missing altogether: the real parser, whatever its message says, reads "e3" as 0.
const SYNTAX = /^([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/;
const EXPONENT = /^[eE]([+-]?[0-9]+)$/;

const DECIMAL_SUFFIXES: ReadonlyMap<string, number> = new Map([
  ["n", -9],
  ["u", -6],
  ["m", -3],
  ["", 0],
  ["k", 3],
  ["M", 6],
  ["G", 9],
  ["T", 12],
  ["P", 15],
  ["E", 18],
]);

/** The suffix at index i stands for 1024^i. */
const BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] as const;

/** Also takes a number, as the API does where somebody wrote `storage: 5`. Finer than nano rounds away from zero. */
export function parseQuantity(text: string | number): Quantity {
  const source = String(text);
  const match = source.length <= TEXT_CHARS_MAX && source !== "" ? SYNTAX.exec(source) : null;
  if (match === null) throw unreadable(source, FORM);
  const [, sign = "", whole = "", fraction = "", suffix = ""] = match;
  const { factor, exponent, format } = parseSuffix(source, suffix);

  // value = digits x 10^(exponent - fraction digits) x factor, wanted in units of 10^-9.
  const shift = exponent - fraction.length + 9;
  const digits = BigInt(`0${whole}${fraction}`) * factor;
  const magnitude = shift >= 0 ? digits * 10n ** BigInt(shift) : divideUp(digits, 10n ** BigInt(-shift));
  if (magnitude >= NANOS_LIMIT) throw unreadable(source, "the value must be below 10^100");
  const capped = format === "BinarySI" && magnitude > BINARY_NANOS_MAX ? BINARY_NANOS_MAX : magnitude;
  return { nanos: sign === "-" ? -capped : capped, format };
}

/** The text the real library gives: same family of suffixes, no fraction, the largest suffix that loses nothing. */
export function formatQuantity({ nanos, format }: Quantity): string {
  if (nanos === 0n) return "0";
  const magnitude = nanos < 0n ? -nanos : nanos;
  // Below 1Ki or with a fraction no binary suffix fits, and none is forced on it.
  if (format === "BinarySI" && magnitude >= 1024n * NANOS_PER_UNIT && nanos % NANOS_PER_UNIT === 0n) {
    return formatBinary(nanos / NANOS_PER_UNIT);
  }
  return formatDecimal(nanos, format);
}

export function compareQuantities(a: Quantity, b: Quantity): -1 | 0 | 1 {
  if (a.nanos === b.nanos) return 0;
  return a.nanos < b.nanos ? -1 : 1;
}

/** In the format of `a`; zero has no opinion and takes that of `b`. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

export function subtractQuantities(a: Quantity, b: Quantity): Quantity {
  return addQuantities(a, { ...b, nanos: -b.nanos });
}

/** Whole bytes, rounded up (away from zero): a volume of 1.5 bytes needs two. */
export function quantityToBytes({ nanos }: Quantity): bigint {
  return divideUp(nanos, NANOS_PER_UNIT);
}

export function quantityFromBytes(bytes: bigint, format: "BinarySI" | "DecimalSI"): Quantity {
  return { nanos: bytes * NANOS_PER_UNIT, format };
}

/** What the server does to every value of a ResourceList (capacity, requests, limits) on the way in. */
export function roundUpToMilli({ nanos, format }: Quantity): Quantity {
  return { nanos: divideUp(nanos, NANOS_PER_MILLI) * NANOS_PER_MILLI, format };
}

interface Suffix {
  readonly factor: bigint;
  readonly exponent: number;
  readonly format: QuantityFormat;
}

function parseSuffix(source: string, suffix: string): Suffix {
  const decimal = DECIMAL_SUFFIXES.get(suffix);
  if (decimal !== undefined) return { factor: 1n, exponent: decimal, format: "DecimalSI" };
  const power = BINARY_SUFFIXES.findIndex((known) => known === suffix);
  if (power > 0) return { factor: 1024n ** BigInt(power), exponent: 0, format: "BinarySI" };

  const written = EXPONENT.exec(suffix)?.[1];
  if (written === undefined) throw unreadable(source, "unable to parse quantity's suffix");
  const exponent = Number(written);
  if (Math.abs(exponent) > EXPONENT_MAX) {
    throw unreadable(source, `the exponent must be between -${EXPONENT_MAX} and ${EXPONENT_MAX}`);
  }
  return { factor: 1n, exponent, format: "DecimalExponent" };
}

function formatBinary(units: bigint): string {
  let [mantissa, power] = [units, 0];
  while (mantissa % 1024n === 0n && power < BINARY_SUFFIXES.length - 1) {
    mantissa /= 1024n;
    power++;
  }
  return `${mantissa}${BINARY_SUFFIXES[power] ?? ""}`;
}

function formatDecimal(nanos: bigint, format: QuantityFormat): string {
  const exponentMax = format === "DecimalExponent" ? Infinity : 18;
  let [mantissa, exponent] = [nanos, -9];
  while (mantissa % 1000n === 0n && exponent < exponentMax) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (format === "DecimalExponent") return exponent === 0 ? String(mantissa) : `${mantissa}e${exponent}`;
  const suffix = [...DECIMAL_SUFFIXES].find(([, power]) => power === exponent)?.[0] ?? "";
  return `${mantissa}${suffix}`;
}

/** Away from zero, for a positive divisor. */
function divideUp(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  if (value % divisor === 0n) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

function unreadable(source: string, why: string): KubeError {
  const shown = source.length <= TEXT_CHARS_MAX ? source : `${source.slice(0, TEXT_CHARS_MAX)}...`;
  return new KubeError("BadInput", `quantity "${shown}": ${why}`);
}
