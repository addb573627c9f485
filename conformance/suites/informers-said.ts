/** What a program of client-go tells of its caches, at `--v=2`. */
export interface Informers {
  /** Kinds of which a cache was filled. */
  readonly filled: readonly string[];
  /** Kinds that could not be listed or watched, with what the server answered: once is too often. */
  readonly refused: readonly string[];
  /** So many waited for their caches and have not gone on. */
  readonly waiting: number;
}

const FILLED = /"Caches populated" .*?type="\*?([^"]+)"/g;
const REFUSED = /"Failed to watch" err="((?:[^"\\]|\\.)*)"/g;

export function informersOf(log: string): Informers {
  const count = (line: string) => log.split(line).length - 1;
  return {
    filled: unique(log, FILLED),
    refused: unique(log, REFUSED),
    waiting: count('"Waiting for caches to sync"') - count('"Caches are synced"'),
  };
}

function unique(log: string, pattern: RegExp): string[] {
  return [...new Set([...log.matchAll(pattern)].map(([, found = ""]) => found))].sort();
}

/** Throws while an informer is stuck; answers of how many kinds there are caches. */
export function noneStuck(program: string, log: string): number {
  const { filled, refused, waiting } = informersOf(log);
  if (refused.length > 0)
    throw new Error(`${program}: ${refused.length} kinds refused: ${refused.slice(0, 3).join("; ")}`);
  if (waiting > 0) throw new Error(`${program}: ${waiting} still wait for their caches`);
  if (filled.length === 0) throw new Error(`${program}: no cache is filled`);
  return filled.length;
}
