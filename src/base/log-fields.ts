/**
 * A log line has each key once. Fields of a line, of its logger and of the loggers before it are one object already; what
 * is left are the names that the line itself has: JSON allows a name twice, and readers then see the one or the other.
 */
const OF_THE_LINE: ReadonlySet<string> = new Set(["level", "time", "message"]);

/** Such a field keeps its value under `field.message`, `field.time`, `field.level`. */
export function distinctFields(fields: Record<string, unknown>): Record<string, unknown> {
  if (!Object.keys(fields).some((name) => OF_THE_LINE.has(name))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [OF_THE_LINE.has(name) ? `field.${name}` : name, value]),
  );
}
