import { isObject, text } from "../volumes/untrusted.ts";

/*
 * Reading objects of any cluster. A foreign API server, a proxy or a half-written object may leave out or twist any
 * field; what is not there is empty, so that no view throws.
 */

export function field(object: unknown, ...path: readonly string[]): unknown {
  return valueAt(object, path);
}

/** A list of ten thousand rows asks half a million times: the path is handed on, not spread again. */
function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object;
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

export function textAt(object: unknown, ...path: readonly string[]): string {
  return text(valueAt(object, path));
}

export function textsAt(object: unknown, ...path: readonly string[]): readonly string[] {
  const value = valueAt(object, path);
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

export function objectsAt(object: unknown, ...path: readonly string[]): readonly object[] {
  const value = valueAt(object, path);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function numberAt(object: unknown, ...path: readonly string[]): number | undefined {
  const value = valueAt(object, path);
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** Undefined for what is no moment. */
export function timeAt(object: unknown, ...path: readonly string[]): number | undefined {
  const ms = Date.parse(text(valueAt(object, path)));
  return Number.isNaN(ms) ? undefined : ms;
}

export function nameOf(object: unknown): string {
  return textAt(object, "metadata", "name");
}

/** `namespace/name`, or the name alone. */
export function idOf(object: unknown): string {
  const namespace = textAt(object, "metadata", "namespace");
  return namespace ? `${namespace}/${nameOf(object)}` : nameOf(object);
}

export function createdAt(object: unknown): number | undefined {
  return timeAt(object, "metadata", "creationTimestamp");
}

export function isDeleting(object: unknown): boolean {
  return textAt(object, "metadata", "deletionTimestamp") !== "";
}

/**
 * Control characters of a message that anybody may have written would move the cursor of who reads it. One that is too long
 * is cut in the middle: it begins with what was tried and ends with what went wrong.
 */
export function oneLine(message: string, charsMax = 300): string {
  // eslint-disable-next-line no-control-regex -- these are the characters to take out
  const line = message.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  if (line.length <= charsMax) return line;
  const head = Math.floor((charsMax - 3) / 3);
  return `${line.slice(0, head)} … ${line.slice(line.length - (charsMax - 3 - head))}`;
}
