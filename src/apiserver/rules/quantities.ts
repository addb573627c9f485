import { compareQuantities, parseQuantity, type Quantity } from "../../kube/quantity.ts";
import { isJsonList, isJsonObject } from "../../kube/patch/json.ts";
import { invalidValue, type Cause } from "./causes.ts";

/** Amounts by name: capacity, requests, limits. */
export type ResourceList = Readonly<Record<string, string | undefined>>;

/** Negative, zero or positive, as with numbers; what is absent counts as nothing at all. */
export function compareAmounts(a: string | undefined, b: string | undefined): number {
  return compareQuantities(amountOf(a), amountOf(b));
}

export function positiveAmount(field: string, amount: string): Cause[] {
  return compareAmounts(amount, "0") > 0 ? [] : [invalidValue(field, amount, "must be greater than zero")];
}

export function notNegativeAmount(field: string, amount: string | undefined): Cause[] {
  return compareAmounts(amount, "0") >= 0
    ? []
    : [invalidValue(field, amount, "must be greater than or equal to 0")];
}

export function isWholeAmount(amount: string | undefined): boolean {
  return amountOf(amount).nanos % 1_000_000_000n === 0n;
}

function amountOf(amount = "0"): Quantity {
  return parseQuantity(amount);
}

/** Members whose values are amounts, so that 1Gi and 1024Mi are one and the same. */
const AMOUNT_MAPS = new Set(["capacity", "requests", "limits", "overhead"]);
const AMOUNTS = new Set(["sizeLimit", "divisor"]);

/**
 * Equal as far as the API is concerned: an empty list, map or object is an absent one, and
 * amounts are compared by value.
 */
export function sameValue(a: unknown, b: unknown, kind: "plain" | "amounts" | "amount" = "plain"): boolean {
  if (isNothing(a) && isNothing(b)) return true;
  if (kind === "amount") return typeof a === "string" && typeof b === "string" && compareAmounts(a, b) === 0;
  if (isJsonList(a)) {
    return isJsonList(b) && a.length === b.length && a.every((item, index) => sameValue(item, b[index]));
  }
  if (!isJsonObject(a) || !isJsonObject(b)) return a === b;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => sameValue(own(a, key), own(b, key), kindOf(key, kind)));
}

function kindOf(key: string, parent: "plain" | "amounts" | "amount"): "plain" | "amounts" | "amount" {
  if (parent === "amounts" || AMOUNTS.has(key)) return "amount";
  return AMOUNT_MAPS.has(key) ? "amounts" : "plain";
}

/** What an object has under a key that a client chose: `constructor` is a name like any other. */
export function own<T>(object: Readonly<Record<string, T | undefined>>, key: string): T | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
