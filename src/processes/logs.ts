import { openSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "../base/log.ts";
import { createDescriptorWriter, createPinoLogger } from "../base/pino-log.ts";
import type { DataDirectory } from "./data-directory.ts";

const STDERR = 2;

/** The log of a process that talks to a person on its terminal: JSON lines appended to a file, mode 0600. */
export function createFileLogger({ path }: DataDirectory): { log: Logger; file: string } {
  const file = join(path, "mooring.log");
  return { file, log: createPinoLogger({ destination: createDescriptorWriter(open(file)) }) };
}

/** A full disk has room for the name of an empty file more often than not; else lines go to stderr. */
function open(file: string): number {
  try {
    return openSync(file, "a", 0o600);
  } catch {
    return STDERR;
  }
}
