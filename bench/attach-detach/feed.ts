import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";

/** A watch of the benchmark's API server: the state in chunks, then whatever is pushed, and a bookmark now and then. */
export interface Feed {
  push(line: string): void;
}

/** As often as a real server lets hear of an idle watch. */
const BOOKMARK_MS = 60_000;

const CHUNK_CHARACTERS = 64 * 1024;

export function createFeed(
  initial: Iterable<string>,
  { bookmark, signal }: { bookmark: () => string; signal: AbortSignal },
): Feed & { readonly lines: AsyncIterable<string> } {
  let waiting: string[] = [];
  let wake: (() => void) | undefined;

  function push(line: string): void {
    waiting.push(line);
    wake?.();
  }

  async function keepAlive(): Promise<void> {
    for (;;) {
      await sleep(BOOKMARK_MS, undefined, { signal });
      push(bookmark());
    }
  }

  async function* read(): AsyncGenerator<string> {
    yield* inChunks(initial);
    void keepAlive().catch(() => undefined);
    while (!signal.aborted) {
      if (waiting.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      wake = undefined;
      const lines = waiting.join("");
      waiting = [];
      yield lines;
    }
  }

  return { push, lines: read() };
}

/** A turn of the event loop each, as it would be with a socket: timers must go on while a million objects arrive. */
async function* inChunks(pieces: Iterable<string>): AsyncGenerator<string> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < CHUNK_CHARACTERS) continue;
    await turn();
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}
