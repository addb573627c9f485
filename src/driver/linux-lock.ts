import { open, type FileHandle } from "node:fs/promises";
import type { HostFiles } from "./host.ts";
import type { Tools } from "./linux-exec.ts";

/** The caller's signal ends the wait long before. */
const FLOCK_MS_MAX = 60_000;

/**
 * Locks of the kernel (`flock`), which no death leaves behind and which hold between containers, where process numbers
 * mean nothing. Node cannot take one itself: the tool is given our open file, locks it and ends, and the lock stays with
 * the file for as long as we keep it open. 2 to 5 ms.
 */
export function createLinuxLock(tools: Tools): HostFiles["lock"] {
  return async (path, { shared, signal }) => {
    const file = await openIfThere(path);
    if (file === undefined) return undefined;
    try {
      await tools.run("flock", [shared ? "--shared" : "--exclusive", "3"], {
        timeoutMs: FLOCK_MS_MAX,
        signal,
        file: file.fd,
      });
    } catch (error) {
      await file.close();
      throw error;
    }
    return () => file.close();
  };
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
