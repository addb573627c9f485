import type { Logger } from "../../base/log.ts";
import { HostError, type Host } from "../host.ts";
import { hostFailure } from "./failures.ts";

/** Directories that something is mounted on belong to root and are nobody else's business until then. */
const TARGET_MODE = 0o750;

/**
 * Makes the directory and mounts onto it; done where something is mounted there already. After a failure nothing stays
 * behind, except after a deadline: then the kernel may still be mounting, and only a later tear-down knows.
 */
export async function mountOnce(
  { host, log }: { readonly host: Host; readonly log: Logger },
  { target, what }: { readonly target: string; readonly what: string },
  mount: () => Promise<void>,
): Promise<void> {
  try {
    if (await host.mounts.isMountPoint(target)) return;
    await host.files.makeDirectories(target, TARGET_MODE);
    await mount();
  } catch (error) {
    if (!(error instanceof HostError && error.code === "TimedOut")) await undo(host, log, target);
    throw hostFailure(what, error);
  }
}

async function undo(host: Host, log: Logger, target: string): Promise<void> {
  try {
    await host.mounts.cleanUp(target);
  } catch (error) {
    log.warn("directory of a failed mount stays", { target, error });
  }
}
