/**
 * What a server can do to a client, as small scripts over one `Reply`. The same scripts run over real
 * sockets (`faulty-server.ts`) and over a handler in memory (`faulty-handler.ts`).
 */
export type Behaviour = (reply: Reply, request: SeenRequest) => Promise<void> | void;

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case, values as they arrived: several lines of one name stay several. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

/** The server's end of one exchange. */
export interface Reply {
  head(status: number, headers?: Readonly<Record<string, string | string[]>>): void;
  /** Resolves when the client's side took it, at the latest when the client is gone. */
  write(chunk: string | Uint8Array): Promise<void>;
  end(): void;
  /** The whole connection dies, without a word and with everything on it. */
  cut(): void;
  /** Only this exchange dies; over HTTP/1.1 that is its connection. */
  reset(): void;
  /** HTTP/2: asks the client, politely, to use another connection from now on. */
  goAway(): void;
  /** When the client is gone or the exchange is complete. */
  readonly closed: Promise<void>;
}

/** Whatever runs behaviours: each request to `path` takes the next one, and the last one stays. */
export interface FaultScript {
  on(path: string, ...behaviours: [Behaviour, ...Behaviour[]]): void;
  /** Every request that arrived whole, in order. */
  readonly seen: readonly SeenRequest[];
  /** Resolves when `count` requests to `path` have arrived. */
  arrived(path: string, count?: number): Promise<void>;
}

export interface AnswerOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Uint8Array;
}

export function answer({ status = 200, headers = JSON_TYPE, body = "" }: AnswerOptions = {}): Behaviour {
  return async (reply) => {
    reply.head(status, headers);
    if (body.length > 0) await reply.write(body);
    reply.end();
  };
}

/** An error as the API server words it: 429 with Retry-After, 500, ... */
export function status(
  code: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): Behaviour {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason,
    message: `${reason} by script`,
    code,
  };
  return answer({ status: code, headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) });
}

export const tooManyRequests = (retryAfterSeconds: number): Behaviour =>
  status(429, "TooManyRequests", { "retry-after": String(retryAfterSeconds) });

/** HTTP 410: the resourceVersion asked for is gone before the watch begins. */
export const expiredAtOnce = (): Behaviour => status(410, "Expired");

/** The connection ends after the whole request was read and before a byte of the answer. */
export const cutBeforeHeaders = (): Behaviour => (reply) => reply.cut();

/** Headers promise more than comes. */
export function cutMidBody(begun: string): Behaviour {
  return async (reply) => {
    reply.head(200, { ...JSON_TYPE, "content-length": String(Buffer.byteLength(begun) + 100) });
    await reply.write(begun);
    reply.cut();
  };
}

/** Takes the request and never answers; the connection stays. */
export const halfOpen = (): Behaviour => () => {};

/** Headers at once, then whatever the test writes, when it writes it. */
export function scripted(): { readonly behaviour: Behaviour; readonly reply: Promise<Reply> } {
  let opened: (reply: Reply) => void = () => {};
  const reply = new Promise<Reply>((resolve) => (opened = resolve));
  return {
    reply,
    behaviour: (begun) => {
      begun.head(200, JSON_TYPE);
      opened(begun);
    },
  };
}

/** A watch that begins and then says nothing, not even a bookmark. */
export const silentWatch = (): Behaviour => watchOf([], (reply) => reply.closed);

/** These lines, then the end of the stream, as when the server's own timeout passes. */
export const watchLines = (...lines: readonly string[]): Behaviour => watchOf(lines, (reply) => reply.end());

export const expiredInStream = (...before: readonly string[]): Behaviour =>
  watchLines(
    ...before,
    JSON.stringify({
      type: "ERROR",
      object: { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Expired", code: 410 },
    }),
  );

/** Each event twice, as a server behind a retrying proxy may send them. */
export const duplicateEvents = (...lines: readonly string[]): Behaviour =>
  watchLines(...lines.flatMap((line) => [line, line]));

/** Last first: resourceVersions go backwards. */
export const reorderedEvents = (...lines: readonly string[]): Behaviour => watchLines(...lines.toReversed());

/** A line that is not JSON, between two that are. */
export const garbageLine = (first: string, second: string): Behaviour =>
  watchLines(first, "}{ not json", second);

/** The stream ends properly in the middle of a line. */
export function halfLine(whole: string, half: string): Behaviour {
  return async (reply) => {
    reply.head(200, JSON_TYPE);
    await reply.write(`${whole}\n`);
    await reply.write(half.slice(0, Math.floor(half.length / 2)));
    reply.end();
  };
}

/** The connection dies after these lines. */
export const cutWatch = (...lines: readonly string[]): Behaviour => watchOf(lines, (reply) => reply.cut());

/** Only this stream dies after these lines. */
export const resetStream = (...lines: readonly string[]): Behaviour =>
  watchOf(lines, (reply) => reply.reset());

/** Says GOAWAY before it answers, which the client must still receive. */
export function goAway(options: AnswerOptions = {}): Behaviour {
  return async (reply, request) => {
    reply.goAway();
    await answer(options)(reply, request);
  };
}

const JSON_TYPE = { "content-type": "application/json" };

function watchOf(lines: readonly string[], finish: (reply: Reply) => Promise<void> | void): Behaviour {
  return async (reply) => {
    reply.head(200, JSON_TYPE);
    for (const line of lines) await reply.write(`${line}\n`);
    await finish(reply);
  };
}

/** The bookkeeping of a script, for whoever turns arrivals into calls of `take`. */
export function createScript(): FaultScript & { take(request: SeenRequest): Behaviour } {
  const behaviours = new Map<string, Behaviour[]>();
  const seen: SeenRequest[] = [];
  const waiting = new Set<() => void>();
  const countOf = (path: string) => seen.filter((request) => pathOnly(request.path) === path).length;
  return {
    seen,
    on(path, ...queue) {
      behaviours.set(path, queue);
    },
    arrived: (path, count = 1) =>
      new Promise((resolve) => {
        const check = () => {
          if (countOf(path) < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    take(request) {
      seen.push(request);
      for (const check of [...waiting]) check();
      const queue = behaviours.get(pathOnly(request.path)) ?? [];
      return (queue.length > 1 ? queue.shift() : queue[0]) ?? answer({ body: "{}" });
    },
  };
}

function pathOnly(path: string): string {
  return path.split("?", 1)[0] ?? path;
}
