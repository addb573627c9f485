/**
 * Where the time of an attach or a detach goes. Phases follow one another without a gap, so that their
 * histograms add up to the wall time of the whole: what is slow is visible without a trace.
 */
export const ATTACH_PHASES = ["create", "attach", "report"] as const;
export const DETACH_PHASES = ["unmount", "unlist", "detach"] as const;

export type AttachPhase = (typeof ATTACH_PHASES)[number];
export type DetachPhase = (typeof DETACH_PHASES)[number];
export type Phase = AttachPhase | DetachPhase;

export interface Timing {
  readonly operation: "attach" | "detach";
  readonly startedMs: number;
  /** When the phase under way began. */
  phaseMs: number;
  /** How many phases are over. */
  over: number;
}

export function startTiming(operation: Timing["operation"], nowMs: number): Timing {
  return { operation, startedMs: nowMs, phaseMs: nowMs, over: 0 };
}

export interface PhaseTaken {
  readonly phase: Phase;
  readonly tookMs: number;
}

/**
 * Ends every phase up to and including `phase`; those that were skipped (a VolumeAttachment that existed already)
 * took no time. Answers what to observe, nothing if it was over before.
 */
export function endPhase(timing: Timing | undefined, phase: Phase, nowMs: number): readonly PhaseTaken[] {
  if (timing === undefined) return [];
  const phases: readonly Phase[] = timing.operation === "attach" ? ATTACH_PHASES : DETACH_PHASES;
  const ended: PhaseTaken[] = [];
  for (const last = phases.indexOf(phase); timing.over <= last; timing.over++) {
    ended.push({ phase: phases[timing.over] as Phase, tookMs: nowMs - timing.phaseMs });
    timing.phaseMs = nowMs;
  }
  return ended;
}

export function isLastPhase(phase: Phase): boolean {
  return phase === "report" || phase === "detach";
}
