import { HostError, type HostErrorCode } from "./host.ts";

const CODES: Readonly<Record<string, HostErrorCode>> = {
  ENOENT: "NotFound",
  EEXIST: "Exists",
  ENOTEMPTY: "NotEmpty",
  EBUSY: "Busy",
  ETXTBSY: "Busy",
  ENOSPC: "NoSpace",
  EDQUOT: "NoSpace",
  EFBIG: "NoSpace",
  EPERM: "NotPermitted",
  EROFS: "NotPermitted",
  ETIMEDOUT: "TimedOut",
  ENOTCONN: "Corrupted",
  ESTALE: "Corrupted",
  EIO: "Corrupted",
  EACCES: "Corrupted",
  EHOSTDOWN: "Corrupted",
  EWOULDBLOCK: "Corrupted",
  EAGAIN: "Corrupted",
  ENODEV: "Corrupted",
};

/** Whatever failed, as a HostError that says what was attempted; the system's code stays readable. */
export function toHostError(doing: string, error: unknown): HostError {
  if (error instanceof HostError) return error;
  const code = errnoOf(error) ?? "failed";
  const detail = code === "failed" && error instanceof Error ? error.message : code;
  return new HostError(CODES[code] ?? "Failed", `${doing}: ${detail}`, { cause: error });
}

export async function failing<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toHostError(doing, error);
  }
}

/** Undefined where a step of the path is missing. */
export async function orMissing<T>(doing: string, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw toHostError(doing, error);
  }
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "");
}

export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
