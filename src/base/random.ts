/** Chance as an argument: a seed replays every jitter, name and order. Never for keys or tokens. */
export interface Random {
  /** In [0, 1). */
  float(): number;
  /** A whole number in [0, below). */
  int(below: number): number;
  /** An independent stream: what one part draws does not shift what another gets. */
  fork(name: string): Random;
}

/** Picks one; the list must not be empty. */
export function pick<T>(random: Random, items: readonly T[]): T {
  return items[random.int(items.length)] as T;
}

export function chance(random: Random, probability: number): boolean {
  return random.float() < probability;
}

/** A new array in another order (Fisher and Yates). */
export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  const shuffled = [...items];
  for (let index = shuffled.length - 1; index > 0; index--) {
    const other = random.int(index + 1);
    [shuffled[index], shuffled[other]] = [shuffled[other] as T, shuffled[index] as T];
  }
  return shuffled;
}

/** A version 4 UUID, for object uids and request ids. */
export function uuid(random: Random): string {
  const group = () => (0x10000 + random.int(0x10000)).toString(16).slice(1);
  const version = (0x4000 + random.int(0x1000)).toString(16);
  const variant = (0x8000 + random.int(0x4000)).toString(16);
  return `${group()}${group()}-${group()}-${version}-${variant}-${group()}${group()}${group()}`;
}
