import { evaluationError } from "../errors.ts";
import { declare, type Library, type Work } from "../functions.ts";
import { isNumber, Uint } from "../numbers.ts";
import { formatDuration, formatTimestamp } from "../time.ts";
import { Duration, isList, MapValue, Timestamp, TypeValue, typeName, type Value } from "../values.ts";
import { formatDouble } from "./conversions.ts";

const CLAUSE = /%%|%(?:\.(\d+))?([a-zA-Z])|%/g;
/** Digits after the point; more than a double ever has. */
const PRECISION_MAX = 100;

/** `"%d of %s".format([1, "x"])`. */
export const FORMAT: Library = [declare("string -> format(list(dyn)) string", format)];

function format(text: string, args: readonly Value[], work: Work): string {
  let next = 0;
  let [made, at] = ["", 0];
  for (const match of text.matchAll(CLAUSE)) {
    const [clause, precision, verb] = match;
    made += text.slice(at, match.index);
    at = match.index + clause.length;
    if (clause === "%%") {
      made += "%";
      continue;
    }
    if (verb === undefined) throw evaluationError("could not parse formatting clause");
    const arg = args[next++];
    if (arg === undefined) throw evaluationError(`index ${next - 1} out of range`);
    const part = formatOne(verb, arg, precision === undefined ? undefined : Number(precision));
    work.charge(1 + Math.floor(part.length / 16));
    made += part;
  }
  return made + text.slice(at);
}

function formatOne(verb: string, value: Value, precision = 6): string {
  if (precision > PRECISION_MAX) throw evaluationError(`precision of %${verb} above ${PRECISION_MAX}`);
  switch (verb) {
    case "s":
      return asText(value);
    case "d":
      return decimal(value);
    case "f":
      return finite(value, (number) => toFixed(number, precision));
    case "e":
      return finite(value, (number) => number.toExponential(precision).replace(/e([+-])(\d)$/, "e$10$2"));
    case "b":
      return typeof value === "boolean" ? String(Number(value)) : whole(value, "b").toString(2);
    case "o":
      return whole(value, "o").toString(8);
    case "x":
      return hexadecimal(value);
    case "X":
      return hexadecimal(value).toUpperCase();
    default:
      throw evaluationError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
  }
}

function decimal(value: Value): string {
  if (typeof value === "number") return isFinite(value) ? formatDouble(value) : special(value);
  return String(whole(value, "d"));
}

function whole(value: Value, verb: string): bigint {
  if (typeof value === "bigint") return value;
  if (value instanceof Uint) return value.value;
  throw evaluationError(`error during formatting: %${verb} takes no ${typeName(value)}`);
}

function finite(value: Value, show: (number: number) => string): string {
  if (!isNumber(value))
    throw evaluationError(`error during formatting: a fixed-point clause takes no ${typeName(value)}`);
  const number = Number(value instanceof Uint ? value.value : value);
  return isFinite(number) ? show(number) : special(number);
}

/** Halves go to the even digit, as in Go; JavaScript takes them up. */
function toFixed(number: number, precision: number): string {
  const digits = number.toFixed(Math.min(PRECISION_MAX, precision + 30));
  const point = digits.indexOf(".") + 1;
  const isHalf = /^50*$/.test(digits.slice(point + precision));
  const kept = digits.slice(0, precision === 0 ? point - 1 : point + precision);
  return isHalf && /[02468]$/.test(kept) ? kept : number.toFixed(precision);
}

function special(number: number): string {
  return Number.isNaN(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
}

function hexadecimal(value: Value): string {
  if (typeof value === "string") return Buffer.from(value, "utf8").toString("hex");
  if (value instanceof Uint8Array) return Buffer.from(value).toString("hex");
  return whole(value, "x").toString(16);
}

function asText(value: Value): string {
  if (value === null) return "null";
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return String(value);
  if (value instanceof Uint) return String(value.value);
  if (typeof value === "number") return isFinite(value) ? formatDouble(value) : special(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return formatDuration(value);
  if (value instanceof TypeValue) return value.name;
  if (isList(value)) return `[${value.map(asText).join(", ")}]`;
  if (value instanceof MapValue) {
    const entries = Array.from(value.keys(), (key) => `${asText(key)}: ${asText(value.get(key) ?? null)}`);
    return `{${entries.sort().join(", ")}}`;
  }
  throw evaluationError(`error during formatting: %s takes no ${typeName(value)}`);
}
