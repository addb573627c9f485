import type { Stage } from "../harness/stage.ts";
import type { Binaries } from "../peers/binaries.ts";

/** What a suite gets to work with. */
export interface Performance {
  readonly stage: Stage;
  readonly binaries: Binaries;
}

export interface Suite {
  readonly name: string;
  /** What is claimed, in a line of the table. */
  readonly claim: string;
  /** Run once for every pinned Kubernetes, or only for the newest. */
  readonly everyVersion: boolean;
  /** On two cores with nothing else to do, builds aside. */
  readonly usualSeconds: number;
  /** Answers its figures; throws if the claim does not hold, and Unavailable if it could not be tried. */
  run(performance: Performance): Promise<string>;
}

export interface Outcome {
  readonly suite: string;
  readonly claim: string;
  readonly version: string;
  readonly result: "pass" | "fail" | "unsupported";
  /** Figures of a pass, the reason of anything else. */
  readonly detail: string;
  readonly seconds: number;
}

/** On a busy machine a suite takes up to three times as long as usual: one begins only if so much is left of the run. */
export const PATIENCE = 3;
