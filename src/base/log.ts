/**
 * Structured logs: a constant message and fields. One line for each change of state, silence while
 * nothing changes. Whatever is written went through `redact` first.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with these fields on every line. */
  with(fields: LogFields): Logger;
}

export type LogFields = Readonly<Record<string, unknown>>;
export type LogLevel = "debug" | "info" | "warn" | "error";

export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silentLogger,
};

/**
 * A logger that hands each line to `write`; tests collect them, adapters print them. A line that cannot be written is
 * lost: whoever logs is in the middle of something else, which must not end half done for that.
 */
export function createLogger(
  write: (level: LogLevel, message: string, fields: LogFields) => void,
  base: LogFields = {},
): Logger {
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    try {
      write(level, message, { ...base, ...fields });
    } catch {
      // There is nobody left to tell.
    }
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => createLogger(write, { ...base, ...fields }),
  };
}
