import { meanOf } from "../../bench/attach-detach/report.ts";
import type { Who } from "../../bench/attach-detach/turns.ts";
import type { Figure } from "./peer-report.ts";

/** What was measured of each of them, one entry a round; empty for a peer that is not there. */
export type Sides<Side> = Readonly<Record<Who, readonly Side[]>>;

export type FigureOf<Side> = readonly [string, Figure["better"], (side: Side) => number];

/** The mean of a side's rounds; no peer, no figure of it. */
export function figureOf<Side>({ ours, peer }: Sides<Side>, [name, better, of]: FigureOf<Side>): Figure {
  return {
    name,
    better,
    ours: meanOf(ours, of),
    peer: peer.length === 0 ? undefined : meanOf(peer, of),
  };
}

/** Each as long as its turn lasts. */
export async function measureInTurns<Side>(
  turns: readonly Who[],
  measure: (who: Who) => Promise<Side>,
): Promise<Sides<Side>> {
  const sides: Record<Who, Side[]> = { ours: [], peer: [] };
  for (const who of turns) sides[who].push(await measure(who));
  return sides;
}
