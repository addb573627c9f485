import type { CallRecord } from "../csi/methods.ts";

/**
 * Is the driver itself sound? One bug in one call is that call's INTERNAL. A row of them, with no call between that
 * ended as it was meant to, means that something is broken for everybody: Probe fails then, and a liveness probe has
 * the process replaced.
 */
export interface Soundness {
  observe(call: Pick<CallRecord, "path" | "unexpected">): void;
  problem(): string | undefined;
}

/** A caller that retries at once gets there in a second; a single broken volume among healthy ones never does. */
export const FAULTS_IN_A_ROW_MAX = 5;

export function createSoundness(): Soundness {
  let inARow = 0;
  return {
    observe({ path, unexpected }) {
      // Probe itself answers whatever else is broken.
      if (path.startsWith("/csi.v1.Identity/")) return;
      inARow = unexpected ? inARow + 1 : 0;
    },
    problem: () =>
      inARow < FAULTS_IN_A_ROW_MAX
        ? undefined
        : `${inARow} calls in a row failed in ways the driver does not know`,
  };
}
