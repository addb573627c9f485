import type { Http2SecureServer, Http2Session, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";

/** All open connections of both protocols: how long they may be silent, and how they end. */
export interface Connections {
  /**
   * True for a connection that was told that its next requests will not be run. One that arrives all the same must
   * not be: its client may already have sent it elsewhere, and a write would happen twice.
   */
  isLeaving(session: Http2Session | undefined): boolean;
  /** From now on no HTTP/2 client gets a new stream; those in progress may finish. */
  drain(): void;
  /** What was written over HTTP/1.1 is still delivered; then the connections end. */
  endHttp1(): void;
  destroy(): void;
}

/**
 * From the TLS handshake to the first SETTINGS, which a client sends without waiting for anything; Go gives it 10 s
 * for the preface and 2 s more.
 */
const PREFACE_MS = 10_000;
/**
 * Without an open stream, a new one or a ping. Go closes connections it has not used for 90 s itself, so that this
 * one never meets a request on its way; client-go pings every 30 s what it wants to keep.
 */
const IDLE_MS = 180_000;
/** After GOAWAY, for a client to read it: closing under a request on its way would reset it unread. Go waits as long. */
const LINGER_MS = 1_000;

export function trackConnections(server: Http2SecureServer, clock: Clock): Connections {
  const sockets = new Set<Socket>();
  const http1 = new Set<TLSSocket>();
  const sessions = new Set<ServerHttp2Session>();
  const leaving = new WeakSet<Http2Session>();
  let isDraining = false;
  let isHttp1Ending = false;
  server.on("connection", (socket: Socket) => keepWhileOpen(sockets, socket));
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") return;
    keepWhileOpen(http1, socket);
    // It was in its handshake when everything was told to end.
    if (isHttp1Ending) socket.end();
  });
  server.on("session", (session) => {
    keepWhileOpen(sessions, session);
    if (isDraining) drainSession(session);
    else limitSilence(clock, session, () => leaving.add(session));
  });

  function drainSession(session: ServerHttp2Session): void {
    leaving.add(session);
    session.close();
  }

  return {
    isLeaving: (session) => session !== undefined && leaving.has(session),
    drain() {
      isDraining = true;
      for (const session of sessions) drainSession(session);
    },
    endHttp1() {
      isHttp1Ending = true;
      for (const socket of http1) socket.end();
    },
    destroy() {
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function keepWhileOpen<T extends Socket | ServerHttp2Session>(open: Set<T>, connection: T): void {
  open.add(connection);
  connection.once("close", () => open.delete(connection));
}

/**
 * Lets go of a connection that never speaks HTTP/2, or that nobody uses any more. A watch is an open stream, so it is
 * never cut. One timer a connection, which looks when it fires: moving it with every stream would cost every request.
 */
function limitSilence(clock: Clock, session: ServerHttp2Session, onLeaving: () => void): void {
  let openStreams = 0;
  let activeAtMs = clock.now();
  let timer = clock.after(PREFACE_MS, () => session.destroy());
  const noteActivity = () => {
    activeAtMs = clock.now();
  };
  session.once("remoteSettings", () => {
    timer.cancel();
    noteActivity();
    look();
  });
  session.on("ping", noteActivity);
  session.on("stream", (stream) => {
    openStreams++;
    stream.once("close", () => {
      openStreams--;
      noteActivity();
    });
  });
  session.once("close", () => timer.cancel());

  function look(): void {
    const leftMs = openStreams > 0 ? IDLE_MS : activeAtMs + IDLE_MS - clock.now();
    timer = leftMs > 0 ? clock.after(leftMs, look) : leave();
  }

  function leave() {
    onLeaving();
    session.goaway();
    return clock.after(LINGER_MS, () => session.destroy());
  }
}
