import type { StoreKey } from "./store.ts";

/**
 * A key as text within its resource. NUL sorts before every character a name may have, so that text
 * order is order by namespace, then name: "a" comes before "a-b" with everything in it.
 */
export function toPosition({ namespace, name }: Pick<StoreKey, "namespace" | "name">): string {
  return `${namespace}\0${name}`;
}

/** The first position that can come after this key: where the next page begins. */
export function positionAfter(key: StoreKey): string {
  return `${toPosition(key)}\0`;
}

/** The range of one namespace: from this position, as long as positions begin with it. */
export function namespacePrefix(namespace: string): string {
  return `${namespace}\0`;
}

/**
 * Order of the UTF-8 bytes. JavaScript compares UTF-16 units, four times as fast; the two differ only where a surrogate
 * pair meets a character above U+DFFF. Names of the API have neither.
 */
export function comparePositions(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let index = 0; index < shorter; index++) {
    const [left, right] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (left !== right) return weight(left) - weight(right);
  }
  return a.length - b.length;
}

/** The same order for positions that are all `isPlain`. */
export function comparePlain(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function isPlain(position: string): boolean {
  return !/[\ud800-\uffff]/.test(position);
}

/** Surrogates stand for characters above all others. */
function weight(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
