import { fieldAt, parseStored, type ApiObject } from "../objects.ts";
import type { ObjectStore, StoreKey } from "../store/store.ts";

/** The latest state of one object. Empty `namespace` for cluster-scoped ones. */
export function readObject(store: ObjectStore, key: StoreKey): ApiObject | undefined {
  const stored = store.get(key);
  return stored === undefined ? undefined : parseStored(stored);
}

/** A text field by its path; empty where it is absent or something else. */
export function textAt(object: unknown, ...path: readonly string[]): string {
  const value = fieldAt(object, ...path);
  return typeof value === "string" ? value : "";
}

/** A list by its path; empty where it is absent or something else. */
export function listAt(object: unknown, ...path: readonly string[]): readonly unknown[] {
  const value = fieldAt(object, ...path);
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** The texts of a list; whatever else is in it is left out. */
export function textsAt(object: unknown, ...path: readonly string[]): readonly string[] {
  return listAt(object, ...path).filter((item) => typeof item === "string");
}
