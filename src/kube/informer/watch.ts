import { KubeError } from "../errors.ts";
import type { KubeObject } from "../object.ts";

/** One line of a watch. An ERROR's object is a Status; a BOOKMARK's carries only a resourceVersion. */
export interface WatchEvent<T extends KubeObject> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: T;
}

/** Set on the bookmark that ends the initial events of a streaming list. */
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** An API server stores at most 3 MiB an object; JSON escapes can triple that. */
const LINE_BYTES_MAX = 16 << 20;

const NEWLINE = 0x0a;

const EVENT_TYPES: ReadonlySet<unknown> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);

/**
 * Splits a watch's bytes into events: one batch a chunk, because a promise an event would cost more than
 * parsing it (1,000,000 events on a first sync). A half line at the end is dropped: the stream was cut
 * there, and the event comes again when the watch resumes.
 */
export async function* decodeWatch<T extends KubeObject>(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly WatchEvent<T>[]> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const end = bytes.lastIndexOf(NEWLINE);
    if (end < 0) {
      rest.push(bytes);
      restBytes += bytes.length;
      if (restBytes > LINE_BYTES_MAX) {
        throw new KubeError("BadResponse", `watch: a line of more than ${LINE_BYTES_MAX} bytes`);
      }
      continue;
    }
    const whole = rest.length === 0 ? bytes : Buffer.concat([...rest, bytes]);
    yield decodeLines<T>(whole, restBytes + end);
    rest = end + 1 < bytes.length ? [bytes.subarray(end + 1)] : [];
    restBytes = bytes.length - end - 1;
  }
}

function decodeLines<T extends KubeObject>(bytes: Buffer, end: number): WatchEvent<T>[] {
  const events: WatchEvent<T>[] = [];
  let start = 0;
  while (start < end) {
    const newline = bytes.indexOf(NEWLINE, start);
    const stop = newline < 0 ? end : Math.min(newline, end);
    if (stop > start) events.push(parseEvent<T>(bytes.toString("utf8", start, stop)));
    start = stop + 1;
  }
  return events;
}

function parseEvent<T extends KubeObject>(line: string): WatchEvent<T> {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch (error) {
    // Not the line itself: it may hold a Secret.
    throw new KubeError("BadResponse", `watch: a line of ${line.length} characters that is not JSON`, {
      cause: error,
    });
  }
  const { type, object } = (event ?? {}) as { type?: unknown; object?: { metadata?: unknown } | null };
  const isEvent = EVENT_TYPES.has(type) && typeof object === "object" && object !== null;
  if (!isEvent || (type !== "ERROR" && typeof object.metadata !== "object")) {
    throw new KubeError("BadResponse", "watch: a line that is no watch event");
  }
  return event as WatchEvent<T>;
}

export function endsInitialEvents(event: WatchEvent<KubeObject>): boolean {
  return event.type === "BOOKMARK" && event.object.metadata.annotations?.[INITIAL_EVENTS_END] === "true";
}
