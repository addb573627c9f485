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
 * Order of the UTF-8 bytes. JavaScript compares UTF-16 units, which differs only where a surrogate pair
 * meets a character above U+DFFF.
 */
export function comparePositions(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let index = 0; index < shorter; index++) {
    const [left, right] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (left !== right) return weight(left) - weight(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for characters above all others. */
function weight(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** Where `position` is, or would be inserted, in a sorted list. */
export function lowerBound(positions: readonly string[], position: string): number {
  let [low, high] = [0, positions.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (comparePositions(positions[middle] ?? "", position) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
