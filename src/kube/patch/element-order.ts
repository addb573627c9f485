import { isJsonObject, memberOf, type Json } from "./json.ts";

/**
 * The order of a merged list. Two orders pull at it: the patch's (its own items, or `$setElementOrder`) and
 * the one the list had. Items the patch names come in the patch's order; the others keep theirs; the two
 * are interleaved so that an item unknown to the patch stays before those it stood before. A new item has no
 * old place, so it goes in at once: that is why [a, b] patched with [c] gives [c, a, b].
 */
export function orderMerged(
  merged: readonly Json[],
  patchOrder: readonly Json[],
  oldOrder: readonly Json[],
  mergeKey: string | undefined,
): Json[] {
  const identityOf = (item: Json): Json =>
    mergeKey === undefined || !isJsonObject(item) ? item : (memberOf(item, mergeKey) ?? null);
  const patchRank = ranks(patchOrder.map(identityOf));
  const oldRank = ranks(oldOrder.map(identityOf));
  const rankIn = (order: Map<Json, number>, item: Json): number => order.get(identityOf(item)) ?? Infinity;

  const named = merged
    .filter((item) => patchRank.has(identityOf(item)))
    .sort((a, b) => rankIn(patchRank, a) - rankIn(patchRank, b));
  const others = merged.filter((item) => !patchRank.has(identityOf(item)));
  return interleave(others, named, (other, item) => {
    const place = oldRank.get(identityOf(item));
    return place !== undefined && rankIn(oldRank, other) < place;
  });
}

/** The first place of each: a list may hold an item twice. */
function ranks(items: readonly Json[]): Map<Json, number> {
  const order = new Map<Json, number>();
  items.forEach((item, index) => {
    if (!order.has(item)) order.set(item, index);
  });
  return order;
}

/** Keeps both orders; takes from `others` first wherever `goesBefore` says so. */
function interleave(
  others: readonly Json[],
  named: readonly Json[],
  goesBefore: (other: Json, item: Json) => boolean,
): Json[] {
  const result: Json[] = [];
  let next = 0;
  for (const item of named) {
    for (let other = others[next]; other !== undefined && goesBefore(other, item); other = others[++next]) {
      result.push(other);
    }
    result.push(item);
  }
  return [...result, ...others.slice(next)];
}
