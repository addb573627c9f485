import { isKubeError } from "../../kube/errors.ts";
import { VolumeError, withStep, type Blocker } from "../errors.ts";
import { HostError } from "../host.ts";

/**
 * Runs a step on the machine. A deadline says nothing about what the kernel did, so it is uncertain; everything else
 * the machine refuses is final.
 */
export async function hostStep<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw hostFailure(what, error);
  }
}

export function hostFailure(what: string, error: unknown): VolumeError {
  if (!(error instanceof HostError)) return withStep(`${what}: `, error);
  const outcome = error.code === "TimedOut" ? "uncertain" : "final";
  const kind = error.code === "FilesystemMismatch" ? "filesystem-mismatch" : "other";
  return new VolumeError(outcome, `${what}: ${error.message}`, { cause: error, kind });
}

/** A read of the API that failed: nothing was attempted, and a change of the object is worth another try at once. */
export function readFailure(what: string, error: unknown, blocker: Blocker): VolumeError {
  if (error instanceof VolumeError) return error;
  const text = isKubeError(error) ? error.detail : error instanceof Error ? error.message : String(error);
  return new VolumeError("transient", `${what}${text}`, { cause: error, blockedBy: [blocker] });
}

/** Several failures of one volume as one: as certain as the least certain of them, waiting for whatever any waits for. */
export function joinFailures(failures: readonly VolumeError[]): VolumeError {
  const [first] = failures;
  if (first !== undefined && failures.length === 1) return first;
  const outcome = failures.some((each) => each.outcome === "transient") ? "transient" : "final";
  const texts = [...new Set(failures.map(({ message }) => message))];
  return new VolumeError(outcome, `[${texts.join(", ")}]`, {
    cause: first,
    blockedBy: failures.flatMap(({ blockedBy }) => blockedBy),
  });
}
