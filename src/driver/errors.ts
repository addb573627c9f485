import { CsiError, type CsiCode } from "../csi/errors.ts";
import { HostError, type HostErrorCode } from "./host.ts";

/** What a failed tool or file means to the caller; `doing` says what was attempted, on what. */
export function toAnswer(error: unknown, doing: string): CsiError {
  if (error instanceof CsiError) return error;
  if (!(error instanceof HostError)) return new CsiError("INTERNAL", `${doing} failed`, { cause: error });
  return new CsiError(ANSWERS[error.code], `${doing}: ${error.message}`, { cause: error });
}

const ANSWERS: Readonly<Record<HostErrorCode, CsiCode>> = {
  NoSpace: "RESOURCE_EXHAUSTED",
  NoTool: "FAILED_PRECONDITION",
  NotPermitted: "FAILED_PRECONDITION",
  NotSupported: "FAILED_PRECONDITION",
  // A child that could not be killed may still be at work: an ambiguous code makes the caller try again.
  TimedOut: "ABORTED",
  Busy: "INTERNAL",
  NotFound: "INTERNAL",
  NotEmpty: "INTERNAL",
  Failed: "INTERNAL",
};

export function invalid(message: string): CsiError {
  return new CsiError("INVALID_ARGUMENT", message);
}

export function notFound(message: string): CsiError {
  return new CsiError("NOT_FOUND", message);
}

export function failedPrecondition(message: string): CsiError {
  return new CsiError("FAILED_PRECONDITION", message);
}

export function alreadyExists(message: string): CsiError {
  return new CsiError("ALREADY_EXISTS", message);
}

export function outOfRange(message: string): CsiError {
  return new CsiError("OUT_OF_RANGE", message);
}

/** An id from outside, in a message: cut to what fits a line. */
export function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 128));
}
