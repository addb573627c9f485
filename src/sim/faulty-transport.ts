import { abortReason, type Clock } from "../base/clock.ts";
import { chance, type Random } from "../base/random.ts";
import { KubeError } from "../kube/errors.ts";
import type {
  Transport,
  TransportRequest,
  TransportResponse,
  TransportStream,
} from "../kube/transport/transport.ts";

/** How often each thing goes wrong, as probabilities: a request, or an event of a watch, at a time. */
export interface NetworkFaults {
  /** A request: refused before it is sent. */
  readonly unreachable: number;
  /** A request: swallowed; no answer ever comes. */
  readonly lostRequest: number;
  /** A request: carried out, but the connection breaks before the answer. */
  readonly lostAnswer: number;
  /** A write: the connection breaks at once, and a copy that was on its way is carried out up to `lateMsMax` later. */
  readonly late?: number;
  readonly lateMsMax?: number;
  /** A request: 429 with Retry-After, 500, or 410. */
  readonly tooMany: number;
  readonly serverError: number;
  readonly expired: number;
  /** A PUT or PATCH: 409, as where another writer came in between, again and again for a PATCH. */
  readonly conflict?: number;
  /** A watch, an event at a time: the connection breaks, between events or within one. */
  readonly cut: number;
  /** A watch: nothing arrives any more, though the connection stands. */
  readonly silent: number;
  /** A watch: an event is sent twice, or after its successor. */
  readonly repeated: number;
  readonly swapped: number;
  /** A watch: an ERROR event with 410, or a line that is no JSON. */
  readonly expiredInStream: number;
  readonly garbled: number;
  /** The longest a request or an event takes; drawn evenly. */
  readonly latencyMsMax: number;
}

export const NO_FAULTS: NetworkFaults = {
  unreachable: 0,
  lostRequest: 0,
  lostAnswer: 0,
  tooMany: 0,
  serverError: 0,
  expired: 0,
  cut: 0,
  silent: 0,
  repeated: 0,
  swapped: 0,
  expiredInStream: 0,
  garbled: 0,
  latencyMsMax: 5,
};

/** Who gives up during a shorter wait is told at its end: a listener a request would be a tenth of what a request costs. */
const AT_ONCE_MS = 5;
/** Of all events that nothing else happens to: chunk boundaries fall anywhere. */
const SPLIT = 0.1;

/**
 * The network between one simulated process and a server. Faults are asked for at every step, so that a
 * test can change the weather. Time is that process's clock: a frozen process receives nothing. What it sent travels on
 * `wireClock`, which a test that freezes processes gives apart.
 */
export function createFaultyTransport(
  inner: Transport,
  { clock, wireClock = clock, random }: { clock: Clock; wireClock?: Clock; random: Random },
  faults: () => NetworkFaults,
): Transport {
  async function delayOn(of: Clock, signal?: AbortSignal): Promise<void> {
    const ms = random.float() * faults().latencyMsMax;
    if (ms > AT_ONCE_MS) return of.sleep(ms, signal);
    await of.sleep(ms);
    if (signal?.aborted === true) throw abortReason(signal);
  }
  const delay = (signal?: AbortSignal) => delayOn(clock, signal);

  async function request(call: TransportRequest): Promise<TransportResponse> {
    const early = await before(call);
    if (early !== undefined) return early;
    if (isLate(call)) {
      void deliverLate(call);
      throw new KubeError("ConnectionLost", `${call.method} ${call.path}: the connection broke`);
    }
    const lost = chance(random, faults().lostAnswer);
    const response = await inner.request(call);
    if (lost) throw new KubeError("ConnectionLost", `${call.method} ${call.path}: the connection broke`);
    await delay(call.signal);
    return response;
  }

  /** No dice where nothing is ever late: seeds of other tests keep their meaning. */
  function isLate({ method }: TransportRequest): boolean {
    const { late = 0 } = faults();
    return method !== "GET" && late > 0 && chance(random, late);
  }

  /** Nobody waits for it any more, and nobody can call it back. */
  async function deliverLate({ signal: _, ...call }: TransportRequest): Promise<void> {
    await wireClock.sleep(random.float() * (faults().lateMsMax ?? 0));
    await inner.request(call).catch(() => undefined);
  }

  async function stream(call: TransportRequest): Promise<TransportStream> {
    const early = await before(call);
    if (early !== undefined) return { ...early, body: once(early.body) };
    const opened = await inner.stream(call);
    return opened.status === 200 ? { ...opened, body: spoil(opened.body, call.signal) } : opened;
  }

  /** What happens to a request on its way to the server. */
  async function before(call: TransportRequest): Promise<TransportResponse | undefined> {
    await delayOn(wireClock, call.signal);
    const { unreachable, lostRequest, tooMany, serverError, expired } = faults();
    if (chance(random, unreachable)) throw new KubeError("Unreachable", `${call.path}: connection refused`);
    if (chance(random, lostRequest)) await never(call.signal);
    if (chance(random, tooMany)) return failure(429, "TooManyRequests", { "retry-after": "1" });
    if (chance(random, serverError)) return failure(500, "InternalError");
    if (chance(random, expired)) return failure(410, "Expired");
    return meetsConflict(call) ? failure(409, "Conflict") : undefined;
  }

  function meetsConflict({ method }: TransportRequest): boolean {
    const { conflict = 0 } = faults();
    return (method === "PUT" || method === "PATCH") && conflict > 0 && chance(random, conflict);
  }

  async function* spoil(body: AsyncIterable<Uint8Array>, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    let held: string | undefined;
    for await (const bytes of splitLines(body)) {
      await delay(signal);
      if (held === undefined && faults() === NO_FAULTS && !chance(random, SPLIT)) {
        yield bytes;
        continue;
      }
      const line = bytes.toString("utf8");
      // Bookmarks promise that all before them was sent, so they are never overtaken.
      const mayWait = held === undefined && !line.includes('"BOOKMARK"') && chance(random, faults().swapped);
      if (mayWait) {
        held = line;
        continue;
      }
      const both: string[] = line.includes('"BOOKMARK"') ? [held ?? "", line] : [line, held ?? ""];
      held = undefined;
      for (const text of both.filter((text) => text !== "")) {
        yield* misfortune(text, signal);
        yield* pieces(text);
      }
      if (chance(random, faults().repeated)) yield* pieces(line);
    }
  }

  /** Ends or poisons the stream, or does nothing. */
  async function* misfortune(line: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { cut, silent, expiredInStream, garbled } = faults();
    if (chance(random, silent)) await never(signal);
    if (chance(random, cut)) {
      yield encode(line.slice(0, random.int(line.length)));
      throw new KubeError("ConnectionLost", "the connection broke");
    }
    if (chance(random, garbled)) yield encode(`${line.slice(0, 1 + random.int(line.length - 1))}\n`);
    if (chance(random, expiredInStream)) yield encode(EXPIRED_EVENT);
  }

  /** Chunk boundaries fall anywhere, also within a character. */
  function* pieces(text: string): Generator<Uint8Array> {
    const bytes = encode(text);
    const at = random.int(bytes.length + 1);
    if (at > 0) yield bytes.subarray(0, at);
    if (at < bytes.length) yield bytes.subarray(at);
  }

  return { request, stream, close: () => inner.close() };
}

const EXPIRED_EVENT = `${JSON.stringify({
  type: "ERROR",
  object: {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "Expired",
    code: 410,
    message: "too old",
  },
})}\n`;

function failure(status: number, reason: string, headers: Record<string, string> = {}): TransportResponse {
  return {
    status,
    headers,
    body: JSON.stringify({ kind: "Status", status: "Failure", reason, code: status }),
  };
}

async function* once(text: string): AsyncGenerator<Uint8Array> {
  yield encode(text);
}

/** Each with its newline. What is cut off at the end does not arrive. */
async function* splitLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let rest: Buffer | undefined;
  for await (const chunk of body) {
    const arrived = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const bytes: Buffer = rest === undefined ? arrived : Buffer.concat([rest, arrived]);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      yield bytes.subarray(start, end + 1);
      start = end + 1;
    }
    rest = start < bytes.length ? bytes.subarray(start) : undefined;
  }
}

const NEWLINE = 0x0a;

function encode(text: string): Uint8Array {
  return Buffer.from(text, "utf8");
}

/** Waits for an answer that does not come. */
function never(signal?: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(abortReason(signal));
    else signal?.addEventListener("abort", () => reject(abortReason(signal)), { once: true });
  });
}
