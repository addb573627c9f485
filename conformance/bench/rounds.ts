import type { Figure } from "./peer-report.ts";

/** Ours, and the peer if there is one. */
export type Contestant = "ours" | "peer";

/**
 * Who is measured when: in every round each of them once, and who begins changes, since whoever comes second finds a
 * server with more history and warmer caches.
 */
export function turnsOf(contestants: readonly Contestant[], rounds: number): Contestant[][] {
  return Array.from({ length: rounds }, (_, round) =>
    round % 2 === 0 ? [...contestants] : contestants.toReversed(),
  );
}

export type Sides<Side> = Readonly<Record<Contestant, readonly Side[]>>;

/** The mean of a side's rounds; no peer, no figure of it. */
export function figureOf<Side>(
  { ours, peer }: Sides<Side>,
  [name, better, of]: readonly [string, Figure["better"], (side: Side) => number],
): Figure {
  const mean = (sides: readonly Side[]) => sides.reduce((sum, side) => sum + of(side), 0) / sides.length;
  return { name, better, ours: mean(ours), peer: peer.length === 0 ? undefined : mean(peer) };
}
