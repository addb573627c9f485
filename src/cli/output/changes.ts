import type { ListedRow } from "./lists.ts";

/** A row that came, changed or went. */
export interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly row: ListedRow;
}

/**
 * What is new in `after`, in its order, then what is gone. Ages grow by themselves and are no change: rows are
 * compared by what a program would see of them.
 */
export function changesBetween(before: readonly ListedRow[], after: readonly ListedRow[]): readonly Change[] {
  const known = new Map(before.map((row) => [row.key, JSON.stringify(row.object)]));
  const left = new Set(after.map(({ key }) => key));
  const came = after.flatMap((row): Change[] => {
    const old = known.get(row.key);
    if (old === JSON.stringify(row.object)) return [];
    return [{ type: old === undefined ? "ADDED" : "MODIFIED", row }];
  });
  const gone = before.filter(({ key }) => !left.has(key)).map((row): Change => ({ type: "DELETED", row }));
  return [...came, ...gone];
}
