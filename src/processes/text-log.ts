import type { Logger, LogFields, LogLevel } from "../base/log.ts";
import { createDescriptorWriter, createPinoLogger } from "../base/pino-log.ts";

/** `--logging-format`: JSON lines, or the same fields as a line for people. */
export type LogFormat = "json" | "text";

const STDERR = 2;

/** The log of a process on stderr, redacted in either format. */
export function createProcessLogger({
  level,
  format,
  fields,
}: {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly fields: LogFields;
}): Logger {
  if (format === "json") return createPinoLogger({ level, fields });
  const destination = createDescriptorWriter(STDERR, (line) => `${toText(line)}\n`);
  return createPinoLogger({ level, fields, destination });
}

/** `2026-11-15T20:00:00.000Z INFO attached attachment="csi-1" node="n1"`, from a line of JSON. */
export function toText(line: string): string {
  const { time, level, message, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const pairs = Object.entries(fields).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return [time, String(level).toUpperCase(), message, ...pairs].join(" ");
}
