import { fieldAt } from "../objects.ts";

/**
 * Reading fields of objects nobody has checked. A stored object may be of any shape, and one odd object must
 * not spoil the table of all others, so a field of the wrong type reads as absent.
 */

/** Empty where there is no text. */
export function textAt(object: unknown, ...path: readonly string[]): string {
  const value = fieldAt(object, ...path);
  return typeof value === "string" ? value : "";
}

export function numberAt(object: unknown, ...path: readonly string[]): number | undefined {
  const value = fieldAt(object, ...path);
  return typeof value === "number" ? value : undefined;
}

export function flagAt(object: unknown, ...path: readonly string[]): boolean | undefined {
  const value = fieldAt(object, ...path);
  return typeof value === "boolean" ? value : undefined;
}

export function listAt(object: unknown, ...path: readonly string[]): readonly unknown[] {
  const value = fieldAt(object, ...path);
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

export function textsAt(object: unknown, ...path: readonly string[]): readonly string[] {
  return listAt(object, ...path).filter((item) => typeof item === "string");
}

export function keyCountAt(object: unknown, ...path: readonly string[]): number {
  const value = fieldAt(object, ...path);
  return typeof value === "object" && value !== null ? Object.keys(value).length : 0;
}

export function has(object: unknown, ...path: readonly string[]): boolean {
  const value = fieldAt(object, ...path);
  return value !== undefined && value !== null;
}

/** Amounts are texts, but bare numbers are accepted too; an absent one is zero. */
export function quantityAt(object: unknown, ...path: readonly string[]): string {
  const value = fieldAt(object, ...path);
  return typeof value === "string" || typeof value === "number" ? String(value) : "0";
}

/** The `status` of a condition: `True`, `False`, `Unknown`, or undefined where it was never reported. */
export function conditionStatus(object: unknown, type: string): string | undefined {
  const condition = listAt(object, "status", "conditions").find((item) => textAt(item, "type") === type);
  return condition === undefined ? undefined : textAt(condition, "status");
}
