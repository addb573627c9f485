import { join } from "node:path";
import pino from "pino";
import type { Logger } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import type { DataDirectory } from "./data-directory.ts";

/** The log of a process that talks to a person on its terminal: JSON lines appended to a file, mode 0600. */
export function createFileLogger({ path }: DataDirectory): { log: Logger; file: string } {
  const file = join(path, "mooring.log");
  // Written at once: the last lines before a crash are the ones that matter.
  return {
    file,
    log: createPinoLogger({ destination: pino.destination({ dest: file, sync: true, mode: 0o600 }) }),
  };
}
