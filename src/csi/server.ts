import { createServer, type Server as NetServer, type Socket } from "node:net";
import {
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
} from "@grpc/grpc-js";
import { answerStream, answerUnary, type DispatchDeps } from "./dispatch.ts";
import { CsiError } from "./errors.ts";
import type { CallContext, ServedMethod } from "./methods.ts";
import { bindSocket } from "./socket-file.ts";

export interface CsiServerOptions {
  /** An absolute path: see `parseEndpoint`. */
  readonly socketPath: string;
  readonly served: readonly ServedMethod[];
  /** Of the socket file: its owner alone, unless a group has to call. */
  readonly mode?: number;
  /** Of one request; larger ones are answered with RESOURCE_EXHAUSTED. */
  readonly receiveBytesMax?: number;
}

/** Connections at once; more are closed as they come. Every kubelet call opens one, and closes it again. */
const CONNECTIONS_MAX = 1_024;
/** Calls at once on one connection; a caller with more has to wait. */
const STREAMS_MAX = 1_000;

/**
 * Serves methods on a unix socket. Nothing is kept for a connection that has ended: kubelets open one for every call.
 */
export interface CsiServer {
  /** Starts to listen. FAILED_PRECONDITION if somebody else answers on that path. */
  start(): Promise<void>;
  /**
   * Stops accepting, removes the socket file if it is still ours, and lets running calls finish for `graceMs`; then it
   * cuts their connections. Answers how many handlers were still at work by then.
   */
  stop(options: { readonly graceMs: number }): Promise<{ readonly unfinished: number }>;
}

export function createCsiServer(
  deps: DispatchDeps,
  { socketPath, served, mode = 0o600, receiveBytesMax = 4 << 20 }: CsiServerOptions,
): CsiServer {
  const running = new Running();
  const connections = new Set<Socket>();
  const grpc = createGrpcServer(receiveBytesMax);
  for (const method of served) register(grpc, deps, method, running);
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const listener = createListener(connections, (socket) => injector.injectConnection(socket));
  let file: { close(): void } | undefined;

  return {
    async start() {
      file = await bindSocket(listener, socketPath, mode);
      deps.log.info("csi server listens", { socketPath });
    },
    async stop({ graceMs }) {
      file?.close();
      file = undefined;
      const enough = new AbortController();
      const closed = allClosed(connections);
      grpc.tryShutdown(() => undefined);
      const finished = Promise.all([closed, running.idle()]).then(() => undefined);
      await Promise.race([finished, deps.clock.sleep(graceMs, enough.signal)]).finally(() => enough.abort());
      const unfinished = running.count;
      for (const socket of connections) socket.destroy();
      grpc.forceShutdown();
      deps.log.info("csi server stopped", { socketPath, unfinished });
      return { unfinished };
    },
  };
}

function createGrpcServer(receiveBytesMax: number): Server {
  return new Server({
    "grpc.max_receive_message_length": receiveBytesMax,
    "grpc.max_concurrent_streams": STREAMS_MAX,
    // Its books about sessions grow with every connection there ever was.
    "grpc.enable_channelz": 0,
  });
}

/** The socket is ours and grpc-js gets its connections: its own listener knows neither modes nor stale files. */
function createListener(connections: Set<Socket>, onConnection: (socket: Socket) => void): NetServer {
  const listener = createServer((socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    // A peer that resets its connection is no news; without a listener it would end the process.
    socket.on("error", () => undefined);
    onConnection(socket);
  });
  listener.maxConnections = CONNECTIONS_MAX;
  return listener;
}

/**
 * Until the last answer is on its way and every connection has ended. The callback of grpc-js's `tryShutdown` does not
 * tell: from Node 24 on, closing an HTTP/2 server begins to close its sessions, and grpc-js takes a session that is closing
 * for one that has closed. A handler that has returned does not tell either, since its answer is written after that.
 */
async function allClosed(connections: ReadonlySet<Socket>): Promise<void> {
  await Promise.all(
    [...connections].map((socket) => new Promise<void>((resolve) => socket.once("close", () => resolve()))),
  );
}

/** Handlers at work. A caller who gives up does not end its handler, so this is not the number of calls. */
class Running {
  count = 0;
  #idle: (() => void)[] = [];

  async track<T>(work: Promise<T>): Promise<T> {
    this.count++;
    try {
      return await work;
    } finally {
      if (--this.count === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  idle(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }
}

/** Messages pass as bytes: what cannot be decoded is answered with our code and our words. */
const asIs = (bytes: Buffer): Buffer => bytes;

function register(grpc: Server, deps: DispatchDeps, served: ServedMethod, running: Running): void {
  if (served.method.methodKind === "unary") {
    const handler = (call: ServerUnaryCall<Buffer, Buffer>, callback: sendUnaryData<Buffer>) =>
      void running.track(replyUnary(deps, served, call, callback));
    grpc.register(served.path, handler, asIs, asIs, "unary");
  } else {
    const handler = (call: ServerWritableStream<Buffer, Buffer>) =>
      void running.track(replyStream(deps, served, call));
    grpc.register(served.path, handler, asIs, asIs, "serverStream");
  }
}

async function replyUnary(
  deps: DispatchDeps,
  served: ServedMethod,
  call: ServerUnaryCall<Buffer, Buffer>,
  callback: sendUnaryData<Buffer>,
): Promise<void> {
  const { context, answered } = watchCaller(served, call);
  try {
    const answer = await answerUnary(deps, served, call.request, context);
    answered();
    callback(null, Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength));
  } catch (error) {
    answered();
    callback(toStatus(error));
  }
}

async function replyStream(
  deps: DispatchDeps,
  served: ServedMethod,
  call: ServerWritableStream<Buffer, Buffer>,
): Promise<void> {
  const { context, answered } = watchCaller(served, call);
  try {
    for await (const chunk of answerStream(deps, served, call.request, context)) {
      if (context.signal.aborted) return;
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      if (!call.write(bytes)) await drained(call, context.signal);
    }
    answered();
    call.end();
  } catch (error) {
    answered();
    // grpc-js ends a server stream with a status by way of its error event.
    call.emit("error", toStatus(error));
  }
}

/** Until the reader has caught up or is gone. */
function drained(call: ServerWritableStream<Buffer, Buffer>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      call.off("drain", done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    call.once("drain", done);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}

/** grpc-js says "cancelled" of calls that were answered, too, once their stream is closed: handlers must not hear that. */
function watchCaller(
  { path }: ServedMethod,
  call: { on(event: "cancelled", listener: () => void): unknown },
): { context: CallContext; answered: () => void } {
  const gone = new AbortController();
  let open = true;
  call.on("cancelled", () => {
    if (open) gone.abort(new CsiError("CANCELLED", `${path}: nobody waits for the answer`));
  });
  return { context: { path, signal: gone.signal }, answered: () => (open = false) };
}

function toStatus(error: unknown): { code: number; details: string } {
  // Everything thrown by dispatch is a CsiError made for the caller's eyes.
  return error instanceof CsiError
    ? { code: error.number, details: error.detail }
    : { code: 13, details: "the answer could not be sent" };
}
