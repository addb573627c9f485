import { isKubeError } from "../../kube/errors.ts";
import { isDeeperThan, type Json } from "../../kube/patch/json.ts";
import { formatQuantity, parseQuantity, roundUpToMilli } from "../../kube/quantity.ts";
import { canonicalMicroTime, formatTime, parseTime } from "../../kube/time.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { BODY_DEPTH_MAX } from "./duplicate-keys.ts";
import type { ScalarKind } from "./schema.ts";

/**
 * A scalar as this server stores it: quantities, times and base64 in the one spelling the real server
 * would answer with, everything else as it came. Undefined if it is of another type; null for the time
 * that Go calls zero, which means no time.
 */
export function decodeScalar(kind: ScalarKind, value: unknown): Json | undefined {
  switch (kind) {
    case "string":
      return typeof value === "string" ? value : undefined;
    case "boolean":
      return typeof value === "boolean" ? value : undefined;
    case "int32":
      return isInt32(value) ? value : undefined;
    case "int64":
      return isInt64(value) ? value : undefined;
    case "intOrString":
      return typeof value === "string" || isInt32(value) ? value : undefined;
    case "quantity":
      return isTextOrNumber(value) ? canonicalQuantity(value) : undefined;
    case "bytes":
      return typeof value === "string" ? canonicalBase64(value) : undefined;
    case "time":
      return typeof value === "string" ? readTime(value, TIME_LAYOUT, canonicalTime) : undefined;
    case "microTime":
      return typeof value === "string" ? readTime(value, MICRO_TIME_LAYOUT, canonicalMicroTime) : undefined;
    case "fieldsV1":
    case "raw":
      return passOn(value);
  }
}

/** A value of a ResourceList (capacity, requests, limits), which is never finer than a thousandth. */
export function decodeResource(value: unknown): string | undefined {
  return isTextOrNumber(value) ? canonicalQuantity(value, { isResource: true }) : undefined;
}

/** What Go has where JSON has nothing, or null in a list or map. */
export function zeroOf(kind: ScalarKind): Json {
  switch (kind) {
    case "string":
    case "bytes":
      return "";
    case "boolean":
      return false;
    case "int32":
    case "int64":
    case "intOrString":
      return 0;
    case "quantity":
      return "0";
    case "time":
    case "microTime":
    case "fieldsV1":
    case "raw":
      return null;
  }
}

const INT32_LIMIT = 2 ** 31;
const INT64_LIMIT = 2 ** 63;

function isInt32(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= -INT32_LIMIT && (value as number) < INT32_LIMIT;
}

/**
 * A number, or a bigint where that is too short (kube/json-text.ts). What would be written as more than an int64 holds
 * is refused, because no Go client could read the object, nor any list with it.
 */
function isInt64(value: unknown): value is number | bigint {
  if (typeof value !== "bigint" && !Number.isInteger(value)) return false;
  return (value as number | bigint) >= -INT64_LIMIT && (value as number | bigint) < INT64_LIMIT;
}

function isTextOrNumber(value: unknown): value is string | number | bigint {
  return typeof value === "string" || typeof value === "number" || typeof value === "bigint";
}

/**
 * Already canonical: up to three digits before a suffix are neither divisible by its base nor in need of
 * rounding. Most are written so, and need no arithmetic.
 */
const CANONICAL_QUANTITY = /^[1-9][0-9]{0,2}(?:m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/;

function canonicalQuantity(value: string | number | bigint, { isResource = false } = {}): string {
  const text = typeof value === "number" ? value : String(value).trim();
  if (typeof text === "string" && CANONICAL_QUANTITY.test(text)) return text;
  try {
    const quantity = parseQuantity(text);
    return formatQuantity(isResource ? roundUpToMilli(quantity) : quantity);
  } catch (error) {
    if (!isKubeError(error, "BadInput")) throw error;
    // The real server names neither field nor value: only the sentence behind our `BadInput: quantity "x": `.
    throw new DecodeFailure(error.message.slice(error.message.indexOf('": ') + 3));
  }
}

const TIME_LAYOUT = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_LAYOUT = "2006-01-02T15:04:05.000000Z07:00";
/** Already canonical, as nearly all are: days up to the 28th are in every month. A Lease has three times. */
const CANONICAL_TIME =
  /^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{6})?Z$/;
const ZERO_TIME = /^0001-01-01T00:00:00(\.0+)?Z$/;

function readTime(text: string, layout: string, canonical: (text: string) => string): string | null {
  try {
    if (ZERO_TIME.test(text)) return null;
    const match = CANONICAL_TIME.exec(text);
    const isCanonical = match !== null && (match[1] === undefined) === (layout === TIME_LAYOUT);
    return isCanonical ? text : canonical(text);
  } catch (error) {
    if (!isKubeError(error, "BadInput")) throw error;
    const shown = JSON.stringify(text.slice(0, 64));
    throw new DecodeFailure(`parsing time ${shown} as "${layout}": it is not a moment written that way`);
  }
}

function canonicalTime(text: string): string {
  return formatTime(parseTime(text));
}

/** Go's decoder passes over line ends and takes stray bits at the end; the encoder then writes neither. */
function canonicalBase64(text: string): string {
  const canonical = Buffer.from(text, "base64").toString("base64");
  if (canonical === text) return text;
  const problemAt = base64Problem(text);
  if (problemAt === undefined) return canonical;
  throw new DecodeFailure(`illegal base64 data at input byte ${problemAt}`);
}

/** Buffer.from stops silently at what it cannot read, so a text that did not come back is read again. */
function base64Problem(text: string): number | undefined {
  let [digits, pads, firstPad] = [0, 0, text.length];
  for (let at = 0; at < text.length; at++) {
    const symbol = text.charAt(at);
    if (symbol === "\r" || symbol === "\n") continue;
    if (symbol === "=") {
      if (pads++ === 0) firstPad = at;
    } else if (pads > 0) {
      return firstPad;
    } else if (!BASE64_DIGIT.test(symbol)) {
      return at;
    } else {
      digits++;
    }
  }
  const padsNeeded = (4 - (digits % 4)) % 4;
  return pads === padsNeeded && padsNeeded < 3 ? undefined : firstPad;
}

const BASE64_DIGIT = /[A-Za-z0-9+/]/;

/** Nobody looks inside, but it is written as text again, which recurses. */
function passOn(value: unknown): Json {
  if (isDeeperThan(value, BODY_DEPTH_MAX)) {
    throw new DecodeFailure(`json: it nests deeper than ${BODY_DEPTH_MAX} levels`);
  }
  return value as Json;
}
