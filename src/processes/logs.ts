import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../base/log.ts";
import { createPinoLogger } from "../base/pino-log.ts";
import type { DataDirectory } from "./data-directory.ts";

/** The log of a process that talks to a person on its terminal: JSON lines appended to a file, mode 0600. */
export function createFileLogger({ path }: DataDirectory): { log: Logger; file: string } {
  const file = join(path, "mooring.log");
  const descriptor = openSync(file, "a", 0o600);
  // Written at once: the last lines before a crash are the ones that matter.
  const destination = { write: (line: string) => void writeSync(descriptor, line) };
  return { file, log: createPinoLogger({ destination }) };
}
