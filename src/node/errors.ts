/**
 * How a step on a volume failed. The class decides what is true afterwards, so it travels as a value and survives
 * wrapping; no text is ever searched for it.
 *
 * - `uncertain`: may have happened or be happening still. What was not there may be there now, so it is torn down later.
 * - `transient`: nothing was attempted: a driver is not registered, a secret is missing.
 * - `final`: certainly not done and not in progress. Of an earlier attempt that says nothing.
 */
export type Outcome = "uncertain" | "transient" | "final";

/** What is known about a failure besides its class. */
export type FailureKind =
  | "filesystem-mismatch"
  /** Expansion: the driver cannot while the volume is in use. */
  | "in-use"
  /** Expansion: never possible at this size. */
  | "infeasible"
  | "not-supported"
  /** Mount: the VolumeAttachment is being deleted. */
  | "detaching"
  /** Mount: its driver stages volumes by now, which it did not when this one was set up, so that nothing was staged. */
  | "not-staged"
  | "other";

/** What the step waits for: as soon as one of these changes, it is tried again whatever its back-off. */
export type Blocker =
  | { readonly kind: "driver"; readonly name: string }
  | { readonly kind: "csi-driver-object"; readonly name: string }
  | { readonly kind: "attachment"; readonly name: string }
  | { readonly kind: "secret" | "config-map" | "claim"; readonly namespace: string; readonly name: string }
  | { readonly kind: "persistent-volume"; readonly name: string }
  | { readonly kind: "node" };

/** A driver was called and has not answered: it may be at it still. */
export interface Late {
  /** When it was called, in the clock's `now()`: a step may have done other things for long before. */
  readonly sinceMs: number;
  /** Resolves when it certainly is not any more; may never. */
  readonly over: Promise<void>;
}

export class VolumeError extends Error {
  override readonly name = "VolumeError";
  readonly outcome: Outcome;
  readonly kind: FailureKind;
  readonly blockedBy: readonly Blocker[];
  readonly late: Late | undefined;

  constructor(
    outcome: Outcome,
    message: string,
    options: ErrorOptions & {
      readonly kind?: FailureKind;
      readonly blockedBy?: readonly Blocker[];
      readonly late?: Late | undefined;
    } = {},
  ) {
    super(message, options);
    this.outcome = outcome;
    this.kind = options.kind ?? "other";
    this.blockedBy = options.blockedBy ?? [];
    this.late = options.late;
  }
}

/** Whatever was thrown, as a VolumeError: what nobody classified is final, as upstream has it. */
export function toVolumeError(error: unknown): VolumeError {
  if (error instanceof VolumeError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new VolumeError("final", message, { cause: error });
}

/** The same failure told with what was being done; class, kind and blockers stay. */
export function withStep(step: string, error: unknown): VolumeError {
  const { outcome, kind, blockedBy, late, message } = toVolumeError(error);
  return new VolumeError(outcome, `${step}${message}`, { cause: error, kind, blockedBy, late });
}
