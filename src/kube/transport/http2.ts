import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { abortable, withDeadline, type Clock } from "../../base/clock.ts";
import type { Dialer } from "./http-dial.ts";
import { Http2Connection, type Http2Health } from "./http2-connection.ts";
import { DialError, toKubeError, UnprocessedError } from "./http-errors.ts";
import type { WireRequest, WireResponse } from "./http-wire.ts";

/**
 * HTTP/2 to one server: as few connections as the server's stream limit allows.
 *
 * This is node:http2 and not undici, whose HTTP/2 (7.30) fails the contract: a POST waits until every
 * watch on its connection has ended; a graceful GOAWAY, which API servers send as a matter of routine to
 * spread their load, breaks every exchange under way; and a connection that died in silence is used on.
 */
export interface Http2 {
  /** Sends on a connection with room, dialled if need be; undefined if the server turns out to speak HTTP/1.1. */
  send(request: WireRequest): Promise<WireResponse | undefined>;
  /** Takes nothing new; resolves when what was under way has ended. */
  retire(): Promise<void>;
  close(reason: Error): void;
}

/**
 * Times that a request is sent again after the server promised that it had not looked at it. A server that
 * spreads its load with GOAWAY does that to whatever was sent in the same moment, again and again by chance.
 */
const RESENDS_MAX = 2;

/** The server sends them first of all, so they are one round trip away. */
const SETTINGS_TIMEOUT_MS = 10_000;

export interface Http2Options {
  readonly origin: string;
  readonly dialer: Dialer;
  readonly health: Http2Health;
  /** The server chose HTTP/1.1; the socket is ready for it. */
  readonly onHttp1: (socket: Socket) => void;
}

export function createHttp2(deps: { clock: Clock }, options: Http2Options): Http2 {
  const connections = new Set<Http2Connection>();
  const dials = new Set<Dialing>();
  /** The dial that newcomers join; older ones may still be waited for. */
  let dialing: Dialing | undefined;

  async function dial(signal: AbortSignal): Promise<boolean> {
    const socket = await options.dialer.dial(["h2", "http/1.1"], signal);
    if (!(socket instanceof TLSSocket) || socket.alpnProtocol !== "h2") {
      options.onHttp1(socket);
      return false;
    }
    connections.add(await open(socket, signal));
    return true;
  }

  function open(socket: TLSSocket, signal: AbortSignal): Promise<Http2Connection> {
    const { origin, health } = options;
    const onDeadline = () =>
      new DialError(`connect to ${origin}: no HTTP/2 settings in ${SETTINGS_TIMEOUT_MS / 1000} s`);
    return withDeadline(deps.clock, { ms: SETTINGS_TIMEOUT_MS, signal, onDeadline }, (deadline) =>
      Http2Connection.open(deps, socket, { origin, health, peer: origin, signal: deadline }),
    );
  }

  async function sendOnce(request: WireRequest): Promise<WireResponse | undefined> {
    for (;;) {
      // Found and used in one turn: whoever waited for the same dial looks for room after this.
      const connection = findRoom();
      if (connection !== undefined) return connection.send(request);
      if (!(await waitForDial(request))) return undefined;
    }
  }

  function findRoom(): Http2Connection | undefined {
    for (const connection of connections) {
      if (connection.hasRoom) return connection;
      if (connection.gone) connections.delete(connection);
    }
    return undefined;
  }

  /** All who need a connection at a time wait for one dial. */
  function join(): Dialing {
    if (dialing !== undefined) return dialing;
    const controller = new AbortController();
    const started: Dialing = { controller, waiting: 0, result: dial(controller.signal) };
    dialing = started;
    dials.add(started);
    const forget = () => {
      dials.delete(started);
      if (dialing === started) dialing = undefined;
    };
    started.result.then(forget, forget);
    return started;
  }

  async function waitForDial(request: WireRequest): Promise<boolean> {
    const { signal } = request;
    const joined = join();
    joined.waiting++;
    try {
      return await abortable(joined.result, signal);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw toKubeError(request, error, { sent: false });
    } finally {
      joined.waiting--;
      if (signal?.aborted === true) {
        // It took longer than somebody's deadline: whoever comes next should not inherit that.
        if (dialing === joined) dialing = undefined;
        if (joined.waiting === 0) joined.controller.abort(new Error("nobody waits for this connection"));
      }
    }
  }

  return {
    async send(request) {
      for (let resends = 0; ; resends++) {
        try {
          return await sendOnce(request);
        } catch (error) {
          if (!(error instanceof UnprocessedError) || resends === RESENDS_MAX) throw error;
        }
      }
    },
    async retire() {
      await Promise.all([...connections].map((connection) => connection.retire()));
    },
    close(reason) {
      for (const { controller } of dials) controller.abort(reason);
      for (const connection of connections) connection.destroy(reason);
    },
  };
}

interface Dialing {
  readonly controller: AbortController;
  readonly result: Promise<boolean>;
  waiting: number;
}
