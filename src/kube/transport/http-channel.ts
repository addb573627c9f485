import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { createDialer, type DialerOptions } from "./http-dial.ts";
import { createHttp1 } from "./http1.ts";
import { createHttp2 } from "./http2.ts";
import type { Http2Health } from "./http2-connection.ts";
import type { WireRequest, WireResponse } from "./http-wire.ts";

/**
 * All connections made with one client certificate. TLS is offered HTTP/2 first; a server that picks
 * HTTP/1.1 once is spoken to that way from then on, plain HTTP always is.
 */
export interface Channel {
  send(request: WireRequest): Promise<WireResponse>;
  /** Takes nothing new; resolves when what was under way has ended. */
  retire(): Promise<void>;
  /** Cuts everything. */
  close(reason: Error): Promise<void>;
}

export function createChannel(
  deps: { clock: Clock },
  server: URL,
  { health, ...options }: DialerOptions & { health: Http2Health },
): Channel {
  const { origin } = server;
  const dialer = createDialer(deps, server, options);
  const closing = new AbortController();
  // One listener a connection being made; Node would call more than ten a leak.
  setMaxListeners(0, closing.signal);
  let spare: Socket | undefined;
  let speaksHttp2 = server.protocol === "https:";
  /** Exchanges that have not got their headers yet, and may still need a connection. */
  let starting = 0;
  let onStarted: (() => void) | undefined;

  const http1 = createHttp1(origin, () => {
    const socket = takeSpare();
    return socket === undefined ? dialer.dial(["http/1.1"], closing.signal) : Promise.resolve(socket);
  });

  const http2 = createHttp2(deps, {
    origin,
    dialer,
    health,
    onHttp1: (socket) => {
      speaksHttp2 = false;
      takeSpare()?.destroy();
      spare = socket.unref();
    },
  });

  function takeSpare(): Socket | undefined {
    const socket = spare;
    spare = undefined;
    return socket?.destroyed === true ? undefined : socket?.ref();
  }

  async function send(request: WireRequest): Promise<WireResponse> {
    const response = speaksHttp2 ? await http2.send(request) : undefined;
    return response ?? http1.send(request);
  }

  return {
    async send(request) {
      starting++;
      try {
        return await send(request);
      } finally {
        if (--starting === 0) onStarted?.();
      }
    },
    async retire() {
      if (starting > 0) await new Promise<void>((resolve) => (onStarted = resolve));
      takeSpare()?.destroy();
      await Promise.all([http1.retire(), http2.retire()]);
    },
    async close(reason) {
      closing.abort(reason);
      takeSpare()?.destroy();
      http2.close(reason);
      await http1.close(reason);
    },
  };
}
