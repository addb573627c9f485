import {
  Client,
  connectivityState,
  credentials,
  Metadata,
  type ChannelOptions,
  type ServiceError,
} from "@grpc/grpc-js";
import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethod,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { Clock } from "../base/clock.ts";
import { KnownSecrets } from "../base/known-secrets.ts";
import type { Logger } from "../base/log.ts";
import { codeOfNumber, CsiError } from "./errors.ts";
import { pathOf, type CallOptions, type CallRecord, type Channel } from "./methods.ts";
import { redactMessage, scrubError, secretValues } from "./redact.ts";

export interface GrpcChannelDeps {
  readonly clock: Clock;
  /** Told of every call that has ended, for metrics; must not throw. */
  readonly observe?: ((call: CallRecord) => void) | undefined;
  readonly log?: Logger | undefined;
  /** Logs every request and answer at debug level, redacted. Off where nobody reads them: rendering costs. */
  readonly logCalls?: boolean | undefined;
}

export interface GrpcChannelOptions {
  /** An absolute path: see `parseEndpoint`. */
  readonly socketPath: string;
  /** Of one answer. Go's default is 4 MiB, which ListVolumes of a large backend exceeds. */
  readonly receiveBytesMax?: number;
  readonly sendBytesMax?: number;
  /** Of an answer in the log; what is longer is cut. 0 and less mean no limit. */
  readonly answerCharsMax?: number;
}

/** After a loss the next tries come 0.1 s later and at most 1 s apart: a restarted driver is found at once. */
const RECONNECT_MS = { initial: 100, max: 1_000 };
/** grpc-js has no "never"; this is 24 days, the most a timer of Node can wait. */
const NEVER_IDLE_MS = 2 ** 31 - 1;

/**
 * One long-lived connection to a driver on a unix socket. Made when first needed, made again when lost; a call that
 * meets no driver fails with UNAVAILABLE and is not repeated: whoever calls decides that. No keepalive: the kernel
 * tells at once when the other end of a unix socket is gone, and a driver that hangs is found by deadlines.
 */
export function createGrpcChannel(
  { clock, observe, log, logCalls }: GrpcChannelDeps,
  { socketPath, receiveBytesMax = 64 << 20, sendBytesMax = 4 << 20, answerCharsMax = 0 }: GrpcChannelOptions,
): Channel {
  const client = new Client(
    `unix:${socketPath}`,
    credentials.createInsecure(),
    channelOptions({ receiveBytesMax, sendBytesMax }),
  );
  const lost = new Set<() => void>();
  const callLog = logCalls ? log : undefined;
  /** Of every request: what a driver was told once it may repeat in any later answer. */
  const known = new KnownSecrets();
  let closed = false;
  watchState(connectivityState.IDLE);

  function watchState(last: connectivityState): void {
    client.getChannel().watchConnectivityState(last, Infinity, () => {
      if (closed) return;
      const was = last === connectivityState.READY;
      // Asking with `true` dials again: waiting for the next call would make that one pay for it.
      const now = client.getChannel().getConnectivityState(was);
      watchState(now);
      if (was && now !== connectivityState.READY) for (const listener of [...lost]) listener();
    });
  }

  const deadlineOf = ({ timeoutMs }: CallOptions) => clock.wall().getTime() + timeoutMs;

  function begin<I extends DescMessage>(method: DescMethod & { input: I }, init: MessageInitShape<I>) {
    const path = pathOf(method);
    if (closed) throw new CsiError("UNAVAILABLE", `${path}: the channel to ${socketPath} is closed`);
    const startedAtMs = clock.now();
    const request = create(method.input, init);
    known.learn(secretValues(method.input, request));
    callLog?.debug("csi request", {
      path,
      request: known.scrubDeep(redactMessage(method.input, request)),
    });
    const done = (code: CallRecord["code"]) =>
      observe?.({ path, code, tookMs: clock.now() - startedAtMs, unexpected: false });
    return {
      path,
      bytes: bytesOf(path, method.input, request),
      receive<O extends DescMessage>(schema: O, bytes: Uint8Array): MessageShape<O> {
        const answer = decode(path, schema, bytes);
        callLog?.debug("csi answer", { path, answer: shownAnswer(known, schema, answer, answerCharsMax) });
        return answer;
      },
      succeed: () => done("OK"),
      fail(error: unknown, options: CallOptions): CsiError {
        const failure = scrubError(toCsiError(path, error, options), method.input, request, known);
        done(failure.code);
        callLog?.debug("csi call failed", { path, code: failure.code, message: failure.detail });
        return failure;
      },
    };
  }

  return {
    async unary(method, init, options) {
      const call = begin(method, init);
      try {
        const bytes = await send(client, call, options, deadlineOf(options));
        const answer = call.receive(method.output, bytes);
        call.succeed();
        return answer;
      } catch (error) {
        throw call.fail(error, options);
      }
    },
    async *stream(method, init, options) {
      const call = begin(method, init);
      const source = client.makeServerStreamRequest(call.path, asIs, asIs, call.bytes, new Metadata(), {
        deadline: deadlineOf(options),
      });
      const cancel = () => source.cancel();
      if (options.signal?.aborted) cancel();
      options.signal?.addEventListener("abort", cancel, { once: true });
      try {
        for await (const bytes of source) yield call.receive(method.output, bytes as Buffer);
        call.succeed();
      } catch (error) {
        throw call.fail(error, options);
      } finally {
        options.signal?.removeEventListener("abort", cancel);
        source.cancel();
      }
    },
    ready: (options) => waitForReady(client, socketPath, options, deadlineOf(options)),
    onLost(listener) {
      lost.add(listener);
      return () => lost.delete(listener);
    },
    close() {
      if (closed) return;
      closed = true;
      lost.clear();
      client.close();
    },
  };
}

/** Redacted before it is cut: half a secret is one too. */
function shownAnswer<O extends DescMessage>(
  known: KnownSecrets,
  schema: O,
  answer: MessageShape<O>,
  charsMax: number,
): unknown {
  const shown = known.scrubDeep(redactMessage(schema, answer));
  if (charsMax <= 0) return shown;
  const text = JSON.stringify(shown);
  return text.length <= charsMax ? shown : `${text.slice(0, charsMax)} [cut: ${text.length} characters]`;
}

function channelOptions(max: { receiveBytesMax: number; sendBytesMax: number }): ChannelOptions {
  return {
    // A path as the authority is refused by strict HTTP/2 servers, Node's among them.
    "grpc.default_authority": "localhost",
    "grpc.max_receive_message_length": max.receiveBytesMax,
    "grpc.max_send_message_length": max.sendBytesMax,
    "grpc.initial_reconnect_backoff_ms": RECONNECT_MS.initial,
    "grpc.max_reconnect_backoff_ms": RECONNECT_MS.max,
    "grpc.client_idle_timeout_ms": NEVER_IDLE_MS,
    // A lost connection must surface, not be papered over.
    "grpc.enable_retries": 0,
    // Shared pools keep connections of closed channels for a while, and let channels share a connection.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_channelz": 0,
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
  };
}

/** Messages are encoded here and not in grpc-js, which would call a bad answer INTERNAL: a final code. */
const asIs = (bytes: Buffer): Buffer => bytes;

function send(
  client: Client,
  { path, bytes }: { path: string; bytes: Buffer },
  { signal }: CallOptions,
  deadline: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(new CsiError("CANCELLED", `${path}: cancelled before it was sent`));
      return;
    }
    const cancel = () => call.cancel();
    const call = client.makeUnaryRequest(
      path,
      asIs,
      asIs,
      bytes,
      new Metadata(),
      { deadline },
      (error, answer) => {
        signal?.removeEventListener("abort", cancel);
        if (error !== null) reject(error);
        else resolve(answer ?? Buffer.alloc(0));
      },
    );
    signal?.addEventListener("abort", cancel, { once: true });
  });
}

function bytesOf(path: string, schema: DescMessage, request: Message): Buffer {
  try {
    const bytes = toBinary(schema, request);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } catch {
    throw new CsiError("INVALID_ARGUMENT", `${path}: the request cannot be encoded as ${schema.typeName}`);
  }
}

function decode<O extends DescMessage>(path: string, schema: O, bytes: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(schema, bytes);
  } catch {
    throw new CsiError("INTERNAL", `${path}: the answer is not a ${schema.typeName}`, { unanswered: true });
  }
}

/**
 * Statuses that grpc-js makes up when there was none, under codes that would be final from a driver: INTERNAL for a
 * stream that was cut, UNKNOWN and UNIMPLEMENTED for one that just ended. Its words are all that tells them apart; should
 * a driver ever use the same ones, its answer is taken as uncertain, which is the safe side.
 */
const MADE_HERE =
  /^(Received RST_STREAM with code|Received HTTP status code|No status information received|No message received|Write error: |Write failed |Failed to start HTTP\/2 stream|Failed to decompress|Protocol not secure enough)/;

function toCsiError(path: string, error: unknown, { timeoutMs, signal }: CallOptions): CsiError {
  if (error instanceof CsiError) return error;
  const { code, details } = error as Partial<ServiceError>;
  if (typeof code !== "number") {
    return new CsiError("UNKNOWN", `${path}: the call failed before it was answered`, {
      cause: error,
      unanswered: true,
    });
  }
  if (MADE_HERE.test(details ?? "")) {
    return new CsiError("UNAVAILABLE", `${path}: the connection broke before the answer came`, {
      cause: error,
      unanswered: true,
    });
  }
  const name = codeOfNumber(code);
  if (name === "CANCELLED" && signal?.aborted) {
    return new CsiError(name, `${path}: cancelled by the caller`, { cause: signal.reason, unanswered: true });
  }
  // Its own words name the socket and the load balancer; both sides use ours.
  if (name === "DEADLINE_EXCEEDED" && /^Deadline exceeded/.test(details ?? "")) {
    return new CsiError(name, `${path}: no answer within ${timeoutMs} ms`, { unanswered: true });
  }
  return new CsiError(
    name,
    details === undefined || details === "" ? `${path} failed without a message` : details,
  );
}

function waitForReady(
  client: Client,
  socketPath: string,
  { timeoutMs, signal }: CallOptions,
  deadline: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new CsiError("CANCELLED", `connect to ${socketPath}: cancelled`));
    if (signal?.aborted) {
      onAbort();
      return;
    }
    signal?.addEventListener("abort", onAbort, { once: true });
    client.waitForReady(deadline, (error) => {
      signal?.removeEventListener("abort", onAbort);
      if (error === undefined) resolve();
      else
        reject(
          new CsiError("DEADLINE_EXCEEDED", `connect to ${socketPath}: nobody answers after ${timeoutMs} ms`),
        );
    });
  });
}
