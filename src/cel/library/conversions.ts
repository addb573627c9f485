import { evaluationError } from "../errors.ts";
import { declare, type Library } from "../functions.ts";
import type { Uint } from "../numbers.ts";
import { doubleToWhole, intResult, uintResult } from "../numbers.ts";
import { formatDuration, formatTimestamp, parseDuration, parseTimestamp, timestampResult } from "../time.ts";
import type { MapValue, Timestamp } from "../values.ts";
import { codePoints, Duration, typeName, TypeValue, type Value } from "../values.ts";

const NANOS_PER_SECOND = 1_000_000_000n;

/** `int(x)` and its like, and the few functions that every type has. */
export const CONVERSIONS: Library = [
  declare("dyn(A) dyn", (value: Value) => value),
  declare("type(A) type(A)", (value: Value) => new TypeValue(typeName(value))),

  declare("size(string) int", textSize),
  declare("size(bytes) int", (bytes: Uint8Array) => BigInt(bytes.length)),
  declare("size(list(A)) int", (list: readonly Value[]) => BigInt(list.length)),
  declare("size(map(A, B)) int", (map: MapValue) => BigInt(map.size)),
  declare("string -> size() int", textSize),
  declare("bytes -> size() int", (bytes: Uint8Array) => BigInt(bytes.length)),
  declare("list(A) -> size() int", (list: readonly Value[]) => BigInt(list.length)),
  declare("map(A, B) -> size() int", (map: MapValue) => BigInt(map.size)),

  declare("bool(bool) bool", (value: boolean) => value),
  declare("bool(string) bool", parseBool),

  declare("int(int) int", (value: bigint) => value),
  declare("int(uint) int", ({ value }: Uint) => intResult(value)),
  declare("int(double) int", (value: number) => {
    // At the very ends neighbouring doubles are 1,024 apart, and rounding may have gone beyond.
    if (Math.abs(value) >= 2 ** 63) throw evaluationError("integer overflow");
    return intResult(doubleToWhole(value));
  }),
  declare("int(string) int", (text: string) => intResult(parseWhole(text, /^[+-]?\d{1,20}$/, "int"))),
  declare("int(timestamp) int", ({ nanos }: Timestamp) => wholeSeconds(nanos)),

  declare("uint(uint) uint", (value: Uint) => value),
  declare("uint(int) uint", (value: bigint) => uintResult(value)),
  declare("uint(double) uint", (value: number) => {
    if (value < 0) throw evaluationError("unsigned integer overflow");
    return uintResult(doubleToWhole(value));
  }),
  declare("uint(string) uint", (text: string) => uintResult(parseWhole(text, /^\+?\d{1,20}$/, "uint"))),

  declare("double(double) double", (value: number) => value),
  declare("double(int) double", (value: bigint) => Number(value)),
  declare("double(uint) double", ({ value }: Uint) => Number(value)),
  declare("double(string) double", parseDouble),

  declare("string(string) string", (value: string) => value),
  declare("string(bool) string", (value: boolean) => String(value)),
  declare("string(int) string", (value: bigint) => String(value)),
  declare("string(uint) string", ({ value }: Uint) => String(value)),
  declare("string(double) string", formatDouble),
  declare("string(bytes) string", decodeText),
  declare("string(timestamp) string", (value: Timestamp) => formatTimestamp(value)),
  declare("string(duration) string", (value: Duration) => formatDuration(value)),

  declare("bytes(bytes) bytes", (value: Uint8Array) => value),
  declare("bytes(string) bytes", (value: string) => Buffer.from(value, "utf8")),

  declare("timestamp(timestamp) timestamp", (value: Timestamp) => value),
  declare("timestamp(string) timestamp", parseTimestamp),
  declare("timestamp(int) timestamp", (seconds: bigint) => timestampResult(seconds * NANOS_PER_SECOND)),
  declare("duration(duration) duration", (value: Duration) => value),
  declare("duration(string) duration", parseDuration),
  declare("duration(int) duration", (nanos: bigint) => new Duration(nanos)),
];

function textSize(text: string): bigint {
  return BigInt(codePoints(text).length);
}

function parseBool(text: string): boolean {
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
  if (["0", "f", "F", "false", "FALSE", "False"].includes(text)) return false;
  throw evaluationError(`type conversion error from 'string' to 'bool'`);
}

function parseWhole(text: string, form: RegExp, type: string): bigint {
  if (!form.test(text)) throw evaluationError(`type conversion error from 'string' to '${type}'`);
  return BigInt(text.replace(/^\+/, ""));
}

function parseDouble(text: string): number {
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) return Number(text);
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return NaN;
  throw evaluationError("type conversion error from 'string' to 'double'");
}

/** As Go writes the shortest form: an exponent of at least two digits, and infinity with its sign. */
export function formatDouble(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  return String(value).replace(/e([+-])(\d)$/, "e$10$2");
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw evaluationError("invalid UTF-8 in bytes, cannot convert to string");
  }
}

function wholeSeconds(nanos: bigint): bigint {
  const seconds = nanos / NANOS_PER_SECOND;
  return nanos < 0n && nanos % NANOS_PER_SECOND !== 0n ? seconds - 1n : seconds;
}
