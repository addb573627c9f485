import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { CsiCode } from "./errors.ts";

/** What the generated services look like from both ends. */

export interface CallOptions {
  /** Every call has a deadline; it travels with the call and holds on both sides. */
  readonly timeoutMs: number;
  /** Aborting cancels the call; what the driver has begun may go on. */
  readonly signal?: AbortSignal | undefined;
}

/** Where requests go: a socket with a driver behind it, or handlers in this process. */
export interface Channel {
  /** Rejects with `CsiError`, whatever went wrong. */
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions,
  ): Promise<MessageShape<O>>;
  /** The stream ends normally only after everything was received; otherwise it throws `CsiError`. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    options: CallOptions,
  ): AsyncIterable<MessageShape<O>>;
  /** Resolves once connected; rejects with DEADLINE_EXCEEDED or CANCELLED. Calls need not wait for it. */
  ready(options: CallOptions): Promise<void>;
  /**
   * Calls `listener` each time an established connection is gone: behind the next one there may be another driver, with
   * other capabilities. Returns what takes the listener off again.
   */
  onLost(listener: () => void): () => void;
  /** Ends the connection; running calls fail. Listeners are not told. Twice does nothing. */
  close(): void;
}

/** What a handler learns about a call besides its request. */
export interface CallContext {
  /** `/csi.v1.Controller/CreateVolume` */
  readonly path: string;
  /**
   * The caller has given up or its deadline has passed. Work already begun must be finished or rolled back all the
   * same: the signal only says that nobody waits for the answer.
   */
  readonly signal: AbortSignal;
}

type UnaryHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: CallContext,
) => Promise<MessageInitShape<O>>;

type StreamHandler<I extends DescMessage, O extends DescMessage> = (
  request: MessageShape<I>,
  context: CallContext,
) => AsyncIterable<MessageInitShape<O>>;

/** One function a method; what is left out answers UNIMPLEMENTED. */
export type Handlers<S extends DescService> = {
  readonly [M in keyof S["method"]]?: HandlerOf<S["method"][M]>;
};

type HandlerOf<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? UnaryHandler<I, O>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? StreamHandler<I, O>
      : never;

/** One function a method, over some channel. */
export type Client<S extends DescService> = {
  readonly [M in keyof S["method"]]: CallOf<S["method"][M]>;
};

type CallOf<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options: CallOptions) => Promise<MessageShape<O>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options: CallOptions) => AsyncIterable<MessageShape<O>>
      : never;

/** The path of a method on the wire. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** What a finished call is told to metrics and health. */
export interface CallRecord {
  readonly path: string;
  readonly code: CsiCode | "OK";
  readonly tookMs: number;
  /** Something other than a `CsiError` was thrown: a bug, answered with INTERNAL. */
  readonly unexpected: boolean;
}

/** A method and the function that serves it; made by `serve`, taken by servers. */
export interface ServedMethod {
  readonly path: string;
  readonly method: DescMethodUnary | DescMethodServerStreaming;
  readonly handler: UnaryHandler<DescMessage, DescMessage> | StreamHandler<DescMessage, DescMessage>;
}

/** Binds handlers to their service: `[...serve(Identity, {...}), ...serve(Node, {...})]`. */
export function serve<S extends DescService>(service: S, handlers: Handlers<S>): ServedMethod[] {
  const byName = handlers as Readonly<Record<string, ServedMethod["handler"] | undefined>>;
  return service.methods.flatMap((method) => {
    const handler = byName[method.localName];
    if (handler === undefined || !isServable(method)) return [];
    return [{ path: pathOf(method), method, handler: handler.bind(handlers) }];
  });
}

function isServable(method: DescMethod): method is ServedMethod["method"] {
  return method.methodKind === "unary" || method.methodKind === "server_streaming";
}

/** Typed functions of one service over a channel. */
export function createClient<S extends DescService>(service: S, channel: Channel): Client<S> {
  const calls = service.methods
    .filter(isServable)
    .map((method) => [
      method.localName,
      (request: MessageInitShape<DescMessage>, options: CallOptions) =>
        method.methodKind === "unary"
          ? channel.unary(method, request, options)
          : channel.stream(method, request, options),
    ]);
  return Object.fromEntries(calls) as Client<S>;
}
