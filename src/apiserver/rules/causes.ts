import { formatJson } from "../../kube/json-text.ts";
import type { FieldProblem } from "../errors.ts";

/** One thing wrong with one field, in the words clients know (spec/apiserver.md, section 12). */
export interface Cause extends FieldProblem {
  readonly reason:
    | "FieldValueRequired"
    | "FieldValueInvalid"
    | "FieldValueNotSupported"
    | "FieldValueDuplicate"
    | "FieldValueForbidden"
    | "FieldValueTooLong"
    | "FieldValueNotFound";
}

export type Causes = readonly Cause[];

export const IMMUTABLE = "field is immutable";

export function required(field: string, detail = ""): Cause {
  return {
    reason: "FieldValueRequired",
    field,
    message: `Required value${detail === "" ? "" : `: ${detail}`}`,
  };
}

export function invalidValue(field: string, value: unknown, detail: string): Cause {
  return { reason: "FieldValueInvalid", field, message: `Invalid value: ${show(value)}: ${detail}` };
}

/** One cause for each thing that is wrong with a value. */
export function invalidFor(field: string, value: unknown, details: readonly string[]): Cause[] {
  return details.map((detail) => invalidValue(field, value, detail));
}

export function notSupported(field: string, value: unknown, supported: readonly string[]): Cause {
  const list = supported.map((one) => show(one)).join(", ");
  return {
    reason: "FieldValueNotSupported",
    field,
    message: `Unsupported value: ${show(value)}: supported values: ${list}`,
  };
}

export function duplicate(field: string, value: unknown): Cause {
  return { reason: "FieldValueDuplicate", field, message: `Duplicate value: ${show(value)}` };
}

export function forbiddenField(field: string, detail: string): Cause {
  return { reason: "FieldValueForbidden", field, message: `Forbidden: ${detail}` };
}

export function tooLong(field: string, bytesMax: number): Cause {
  return { reason: "FieldValueTooLong", field, message: `Too long: may not be more than ${bytesMax} bytes` };
}

export function notFoundValue(field: string, value: unknown): Cause {
  return { reason: "FieldValueNotFound", field, message: `Not found: ${show(value)}` };
}

export function causeIf(isWrong: boolean, cause: Cause): Cause[] {
  return isWrong ? [cause] : [];
}

/** A value from a closed list, if there is a value at all. */
export function oneOf(field: string, value: string | undefined, supported: readonly string[]): Cause[] {
  return value === undefined || supported.includes(value) ? [] : [notSupported(field, value, supported)];
}

/** A text that must be there and not be empty. */
export function requiredText(field: string, value: string | undefined): Cause[] {
  return value === undefined || value === "" ? [required(field)] : [];
}

export function notNegative(field: string, value: number | undefined): Cause[] {
  return value === undefined || value >= 0
    ? []
    : [invalidValue(field, value, "must be greater than or equal to 0")];
}

export function inRange(
  field: string,
  value: number | undefined,
  { min, max }: { min: number; max: number },
): Cause[] {
  if (value === undefined || (value >= min && value <= max)) return [];
  return [invalidValue(field, value, `must be between ${min} and ${max}, inclusive`)];
}

/** The same cause twice tells a client nothing; several checks may look at one field. */
export function distinct(causes: Causes): Cause[] {
  const seen = new Set<string>();
  return causes.filter(({ field, reason, message }) => {
    const text = `${reason} ${field} ${message}`;
    return !seen.has(text) && seen.add(text);
  });
}

/** Longer values are cut: an answer must not be as long as the request that it refuses, many times over. */
const VALUE_CHARS_MAX = 1_024;

function show(value: unknown): string {
  const text = value === undefined ? "null" : formatJson(value);
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX)}...`;
}
