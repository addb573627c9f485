import { CsiError } from "../csi/errors.ts";
import { invalid } from "./errors.ts";

/**
 * Pages in order of id. A token is the last id given out, so it stays good when entries come and go; it is spelled
 * so that a token of something else is recognised.
 */
export function page<T extends { readonly id: string }>(
  items: readonly T[],
  { maxEntries, startingToken }: { readonly maxEntries: number; readonly startingToken: string },
): { readonly entries: readonly T[]; readonly nextToken: string } {
  if (maxEntries < 0) throw invalid("max_entries is negative");
  const after = startingToken === "" ? "" : parseToken(startingToken);
  const rest = items.filter(({ id }) => id > after).sort((a, b) => (a.id < b.id ? -1 : 1));
  const entries = maxEntries === 0 ? rest : rest.slice(0, maxEntries);
  const last = entries.at(-1);
  return { entries, nextToken: last !== undefined && entries.length < rest.length ? `after/${last.id}` : "" };
}

function parseToken(token: string): string {
  const match = /^after\/([a-z]+-[0-9a-f-]{36})$/.exec(token);
  if (match?.[1] === undefined) {
    throw new CsiError("ABORTED", "starting_token is not one of ours; begin the list again without it");
  }
  return match[1];
}
