import type { ObjectMeta } from "kubernetes-types/meta/v1.js";

/**
 * `T` as it arrives: any field may be missing, at any depth. The decoder has checked the types of
 * what is there; that something is there is for the rules to say, and the compiler reminds them.
 */
export type Loose<T> = T extends readonly (infer Item)[]
  ? readonly Loose<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: Loose<T[Key]> }
    : T;

/** A whole object: only its metadata is certain. */
export type LooseObject<T> = Loose<Omit<T, "metadata">> & { readonly metadata: ObjectMeta };

/** `object` with those members of `defaults` that it lacks; itself when it lacks none. */
export function withDefaults<T extends object>(object: T, defaults: Partial<T>): T {
  const missing = Object.entries(defaults).filter(([key, value]) => value !== undefined && !(key in object));
  return missing.length === 0 ? object : { ...object, ...Object.fromEntries(missing) };
}

/** A copy without these members. */
export function without<T extends object, K extends keyof T>(object: T, ...keys: readonly K[]): Omit<T, K> {
  const dropped = new Set<PropertyKey>(keys);
  return Object.fromEntries(Object.entries(object).filter(([key]) => !dropped.has(key))) as Omit<T, K>;
}

/** Absent stays absent: members that are undefined are left out. */
export function defined<T extends object>(members: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
