import { HostError, type HostErrorCode } from "./host.ts";

/** What the kernel's errors mean here: with what was attempted, and the cause kept. */

const CODES: Readonly<Record<string, HostErrorCode>> = {
  ENOSPC: "NoSpace",
  EDQUOT: "NoSpace",
  EFBIG: "NoSpace",
  EBUSY: "Busy",
  ENOTEMPTY: "NotEmpty",
  EEXIST: "NotEmpty",
  ENOENT: "NotFound",
  EPERM: "NotPermitted",
};

export async function failing<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HostError) throw error;
    const code = codeOf(error);
    const why = code ?? (error instanceof Error ? error.message : "failed");
    throw new HostError(CODES[code ?? ""] ?? "Failed", `${doing}: ${why}`, { cause: error });
  }
}

export async function orMissing<T>(doing: string, work: () => Promise<T>): Promise<T | undefined> {
  return failing(doing, async () => {
    try {
      return await work();
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes(codeOf(error) ?? "")) return undefined;
      throw error;
    }
  });
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
