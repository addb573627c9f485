import pino from "pino";
import { createLogger, type Logger, type LogFields, type LogLevel } from "./log.ts";
import { redact } from "./redact.ts";

/** JSON lines on stderr, redacted; stdout belongs to data. */
export function createPinoLogger({
  level = "info",
  destination = pino.destination({ dest: 2, sync: true }),
  fields = {},
}: {
  level?: LogLevel;
  destination?: pino.DestinationStream;
  fields?: LogFields;
} = {}): Logger {
  const sink = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: "message",
    },
    destination,
  );
  return createLogger((at, message, line) => {
    // Redaction walks the fields: not for a line nobody will see.
    if (sink.isLevelEnabled(at)) sink[at](redact(line), message);
  }, fields);
}
