import { jittered } from "../../base/backoff.ts";
import { withDeadline, type Clock } from "../../base/clock.ts";
import { noMetrics, type Metrics } from "../../base/metrics.ts";
import type { Random } from "../../base/random.ts";
import type { CallOptions, WriteOptions } from "./client.ts";
import type { Outcome } from "./concurrency.ts";
import { errorFromStatus, isKubeError, KubeError } from "../errors.ts";
import { createLimiter, type LimiterOptions, type Permit } from "./limiter.ts";
import { resourceName, type Resource } from "../object.ts";
import type { RequestMetrics } from "./request-metrics.ts";
import { retryDelayMs, type Repeatable } from "./retry.ts";
import type { Method, Transport, TransportResponse } from "../transport/transport.ts";

/** One request to the API server as a verb means it, before any try at it. */
export interface Call {
  /** `get pods default/web`: how errors begin. */
  readonly what: string;
  readonly verb: string;
  readonly resource: Resource;
  readonly method: Method;
  readonly path: string;
  readonly contentType?: string;
  readonly body?: unknown;
  readonly repeatable: Repeatable;
  readonly options: CallOptions & Pick<WriteOptions, "urgent">;
}

/** Carries a call out: limited, measured, with a deadline, and tried again where that is safe. */
export type Send = <T>(call: Call) => Promise<T>;

export function createSend(
  {
    transport,
    clock,
    random,
    metrics = noMetrics,
    measured,
  }: SendDeps & { readonly measured: RequestMetrics },
  { deadlineMs: defaultDeadlineMs, ...limits }: LimiterOptions & { readonly deadlineMs: number },
): Send {
  const limiter = createLimiter({ clock, metrics }, limits);
  async function placeFor({ options, method }: Call, signal: AbortSignal | undefined): Promise<Permit> {
    const askedAtMs = clock.now();
    const permit = await limiter.acquire(signal, { urgent: options.urgent });
    measured.waited(method, clock.now() - askedAtMs);
    return permit;
  }

  /** One try: over the wire, into an object or a KubeError. */
  async function attempt<T>(
    call: Call,
    { permit, retries, signal }: { permit: Permit; retries: number; signal: AbortSignal },
  ): Promise<T> {
    const startedAtMs = clock.now();
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    let response: TransportResponse | undefined;
    let failure: unknown;
    let outcome: Outcome = "no-sample";
    try {
      response = await transport.request({
        method: call.method,
        path: call.path,
        headers: requestHeaders(call.contentType),
        ...(body === undefined ? {} : { body }),
        signal,
      });
      outcome = outcomeOf(response.status, call.verb);
      return decode<T>(call.what, response);
    } catch (error) {
      if (isKubeError(error, "DeadlineExceeded")) outcome = "overloaded";
      failure = error;
      throw error;
    } finally {
      measured.ended({
        method: call.method,
        verb: call.verb,
        resource: resourceName(call.resource),
        status: response?.status,
        error: isKubeError(failure) ? failure.code : undefined,
        tookMs: clock.now() - startedAtMs,
        requestBytes: body?.length ?? 0,
        responseBytes: response?.body.length ?? 0,
        retries,
      });
      permit.done(outcome);
    }
  }

  /**
   * Tries until it works, must not be repeated, or the deadline is nearer than the next try. The deadline begins with the
   * first place: of 20,000 that ask at once the last waits for a minute, and what was never sent has not failed. Whoever
   * waits costs a place in a queue, and neither a timer nor a signal of its own.
   */
  async function send<T>(call: Call): Promise<T> {
    let permit: Permit | undefined = await placeFor(call, call.options.signal);
    const ms = call.options.deadlineMs ?? defaultDeadlineMs;
    const deadlineAtMs = clock.now() + ms;
    const onDeadline = () =>
      new KubeError(
        "DeadlineExceeded",
        `${call.what}: no answer within ${ms / 1000} s; it may still be carried out`,
      );
    return withDeadline(clock, { ms, signal: call.options.signal, onDeadline }, async (signal) => {
      for (let failures = 1; ; failures++) {
        try {
          const place = permit ?? (await placeFor(call, signal));
          permit = undefined;
          return await attempt<T>(call, { permit: place, retries: failures - 1, signal });
        } catch (error) {
          const waitMs = signal.aborted ? undefined : retryDelayMs(error, failures, call.repeatable);
          // Jitter only lengthens: Retry-After is a promise not to come back sooner.
          const delayMs = waitMs === undefined ? Infinity : jittered(waitMs, 0.5, random);
          if (clock.now() + delayMs >= deadlineAtMs) throw error;
          await clock.sleep(delayMs, signal);
        }
      }
    });
  }

  return send;
}

export interface SendDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics?: Metrics;
  /** `10.96.0.1:443`: the label `host` of the metrics. */
  readonly host?: string;
}

export function requestHeaders(contentType?: string): Readonly<Record<string, string>> {
  if (contentType === undefined) return ACCEPT;
  return { accept: "application/json", "content-type": contentType };
}

const ACCEPT = { accept: "application/json" };

function outcomeOf(status: number, verb: string): Outcome {
  if (status === 429 || status === 503 || status === 504) return "overloaded";
  return verb === "list" ? "no-sample" : "answered";
}

/** The object in an answer, or the error it is. */
export function decode<T>(what: string, { status, headers, body }: TransportResponse): T {
  const parsed = parseJson(body);
  if (status >= 200 && status < 300) {
    if (typeof parsed === "object" && parsed !== null) return parsed as T;
    throw new KubeError("BadResponse", `${what}: HTTP ${status} with a body that is not a JSON object`, {
      status,
    });
  }
  throw errorFromStatus(what, parsed, { status, retryAfterMs: parseRetryAfterMs(headers["retry-after"]) });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Seconds. The other form, a date, is not used by any API server and would need their clock. */
function parseRetryAfterMs(header: string | undefined): number | undefined {
  return header !== undefined && /^[0-9]{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}
