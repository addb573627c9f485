import { writeSync } from "node:fs";
import pino from "pino";
import { createLogger, type Logger, type LogFields, type LogLevel } from "./log.ts";
import { distinctFields } from "./log-fields.ts";
import { createLineWriter, type LineWriter, type Loss } from "./log-lines.ts";
import { redact } from "./redact.ts";

const STDERR = 2;

/** JSON lines on stderr, redacted; stdout belongs to data. Never throws; see `log-lines.ts` for what is lost. */
export function createPinoLogger({
  level = "info",
  destination = createDescriptorWriter(STDERR),
  fields = {},
}: {
  level?: LogLevel;
  destination?: LineWriter;
  fields?: LogFields;
} = {}): Logger {
  const sink = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: distinctFields },
      messageKey: "message",
    },
    destination,
  );
  return createLogger((at, message, line) => {
    // Redaction walks the fields: not for a line nobody will see.
    if (sink.isLevelEnabled(at)) sink[at](redacted(line), message);
  }, fields);
}

/** Into a file or pipe of this process, each line at once. `toLine` makes the line of one of ours in JSON. */
export function createDescriptorWriter(
  descriptor: number,
  toLine: (json: string) => string = (json) => json,
): LineWriter {
  const never = new Int32Array(new SharedArrayBuffer(4));
  const lines = createLineWriter({
    write: (bytes, start) => writeSync(descriptor, bytes, start),
    pause: (ms) => void Atomics.wait(never, 0, 0, ms),
    describeLoss: (loss) => toLine(lossLine(loss, new Date())),
  });
  return { write: (json) => lines.write(toLine(json)) };
}

function lossLine({ lines, code }: Loss, now: Date): string {
  const message = "log lines were lost: they could not be written";
  return `${JSON.stringify({ level: "warn", time: now.toISOString(), message, lines, error: code })}\n`;
}

/** Fields that cannot be walked (a getter that throws, a revoked proxy) cost themselves, not the line. */
function redacted(fields: LogFields): Record<string, unknown> {
  try {
    return redact(fields) as Record<string, unknown>;
  } catch {
    const each = Object.keys(fields).map((name) => {
      try {
        return [name, (redact({ [name]: fields[name] }) as Record<string, unknown>)[name]];
      } catch (error) {
        return [name, `[cannot be shown: ${error instanceof Error ? error.message : typeof error}]`];
      }
    });
    return Object.fromEntries(each) as Record<string, unknown>;
  }
}
