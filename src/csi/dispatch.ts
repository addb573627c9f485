import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { wellFormed } from "../base/known-secrets.ts";
import { scrubText } from "../base/redact.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { CsiError } from "./errors.ts";
import { limitProblem } from "./limits.ts";
import type { CallContext, CallRecord, ServedMethod } from "./methods.ts";
import { redactMessage, scrubValues, sensitiveValues } from "./redact.ts";

/**
 * From the bytes of a request to the bytes of its answer: what a server does that is not about sockets. The socket
 * server and the one in memory share it, so a handler cannot tell them apart.
 */
export interface DispatchDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Told of every call that has ended; must not throw. */
  readonly observe?: ((call: CallRecord) => void) | undefined;
  /** Answers INVALID_ARGUMENT to requests past the limits of the protocol, before their handler sees them. */
  readonly checkLimits?: boolean | undefined;
  /** Logs every request and answer at debug level, redacted. Off, only failures are logged: rendering costs. */
  readonly logCalls?: boolean | undefined;
}

/** Rejects with a `CsiError` that may be shown to anybody. */
export async function answerUnary(
  deps: DispatchDeps,
  served: ServedMethod,
  bytes: Uint8Array,
  context: CallContext,
): Promise<Uint8Array> {
  const call = begin(deps, served, bytes);
  try {
    const answer = await (served.handler(call.decode(), context) as Promise<MessageInitShape<DescMessage>>);
    const encoded = call.encode(answer);
    call.succeed();
    return encoded;
  } catch (error) {
    throw call.fail(error);
  }
}

/**
 * One chunk a message; ends normally only if the handler did. Returned early, because nobody reads on, it returns the
 * handler's generator as well and counts as cancelled.
 */
export async function* answerStream(
  deps: DispatchDeps,
  served: ServedMethod,
  bytes: Uint8Array,
  context: CallContext,
): AsyncGenerator<Uint8Array, void> {
  const call = begin(deps, served, bytes);
  let ended = false;
  try {
    const answers = served.handler(call.decode(), context) as AsyncIterable<MessageInitShape<DescMessage>>;
    for await (const answer of answers) yield call.encode(answer);
    ended = true;
    call.succeed();
  } catch (error) {
    ended = true;
    throw call.fail(error);
  } finally {
    if (!ended) call.abandon();
  }
}

function begin(deps: DispatchDeps, { path, method }: ServedMethod, bytes: Uint8Array) {
  const startedAtMs = deps.clock.now();
  let request: Message | undefined;
  return {
    decode(): Message {
      request = decode(method.input, bytes);
      if (deps.logCalls)
        deps.log.debug("csi request", { path, request: redactMessage(method.input, request) });
      const problem = deps.checkLimits ? limitProblem(method.input, request) : undefined;
      if (problem !== undefined) throw new CsiError("INVALID_ARGUMENT", problem);
      return request;
    },
    encode(init: MessageInitShape<DescMessage>): Uint8Array {
      const answer = create(method.output, init);
      if (deps.logCalls) deps.log.debug("csi answer", { path, answer: redactMessage(method.output, answer) });
      return toBinary(method.output, answer);
    },
    succeed(): void {
      deps.observe?.({ path, code: "OK", tookMs: deps.clock.now() - startedAtMs, unexpected: false });
    },
    abandon(): void {
      deps.observe?.({ path, code: "CANCELLED", tookMs: deps.clock.now() - startedAtMs, unexpected: false });
    },
    fail(thrown: unknown): CsiError {
      const unexpected = !(thrown instanceof CsiError);
      const secrets = request === undefined ? [] : sensitiveValues(method.input, request);
      const error = showable(thrown, secrets);
      deps.observe?.({ path, code: error.code, tookMs: deps.clock.now() - startedAtMs, unexpected });
      if (unexpected) deps.log.error("csi handler failed", { path, error: describe(thrown, secrets) });
      else deps.log.info("csi call refused", { path, code: error.code, detail: error.detail });
      return error;
    },
  };
}

function decode(schema: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(schema, bytes);
  } catch {
    // What the decoder says may quote the bytes; the name of the message is enough to find the sender.
    throw new CsiError(
      "INVALID_ARGUMENT",
      `the request is not a ${schema.typeName}: its bytes cannot be decoded`,
    );
  }
}

/** Longer texts end in a status or an event anyway, which are cut; as a header they could break the connection. */
const MESSAGE_LENGTH_MAX = 1_024;

/** What the caller is told: the handler's own words without secrets; of a bug, only that there is one. */
function showable(thrown: unknown, secrets: readonly string[]): CsiError {
  if (!(thrown instanceof CsiError)) {
    return new CsiError("INTERNAL", "the driver failed in a way it does not know; its log has the cause");
  }
  const detail = wellFormed(scrubText(scrubValues(thrown.detail, secrets)));
  return new CsiError(thrown.code, detail.slice(0, MESSAGE_LENGTH_MAX) || "no message was given");
}

function describe(thrown: unknown, secrets: readonly string[]): string {
  const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return scrubValues(text, secrets);
}
