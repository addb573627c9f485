/** Who is measured: ours, and the peer where there is one. */
export type Who = "ours" | "peer";

/**
 * Each of them once in every round, and who begins changes (ours, peer, peer, ours), since whoever comes second finds a
 * server with more history and warmer caches.
 */
export function turnsOf(contestants: readonly Who[], rounds: number): Who[] {
  return Array.from({ length: rounds }, (_, round) =>
    round % 2 === 0 ? contestants : contestants.toReversed(),
  ).flat();
}
