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
  const hex = Array.from({ length: 32 }, () => random.int(16).toString(16));
  hex[12] = "4";
  hex[16] = (8 + random.int(4)).toString(16);
  const text = hex.join("");
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join(
    "-",
  );
}
