import type { Clock } from "../base/clock.ts";

/**
 * Creates of VolumeAttachments whose answer never came. The server may still carry one out, after a DELETE of ours found
 * nothing and the volume was given to another node: then two nodes have it. So for a while absence is no proof.
 *
 * Forgotten with the term: its successor begins no sooner than the Lease of this one has run out.
 */
export interface Doubts {
  /** The answer to a create of this name got lost just now. */
  add(name: string): void;
  /** How long a VolumeAttachment of this name may still appear; 0 if it cannot. */
  remainingMs(name: string): number;
}

/** A kube-apiserver gives up a request after 60 s (`--request-timeout`); the rest is for what its clock and the network add. */
export const DOUBT_MS = 70_000;

export function createDoubts(clock: Clock): Doubts {
  /** In the order they end. Bound: the creates that failed within `DOUBT_MS`. */
  const untilMs = new Map<string, number>();

  function forgetOld(): void {
    for (const [name, endMs] of untilMs) {
      if (endMs > clock.now()) return;
      untilMs.delete(name);
    }
  }

  return {
    add(name) {
      forgetOld();
      untilMs.delete(name);
      untilMs.set(name, clock.now() + DOUBT_MS);
    },
    remainingMs: (name) => Math.max(0, (untilMs.get(name) ?? 0) - clock.now()),
  };
}
