import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/**
 * A stretch of network in front of a server on this machine, so that faults happen to the connection and
 * not to the server's idea of it: Node's HTTP/2 may survive the end of its own socket and answer pings.
 */
export interface Relay {
  readonly port: number;
  /** Connections that came through so far. */
  readonly accepted: number;
  /** Those still open. */
  readonly open: number;
  /** Ends the connection that the server knows by this port of its peer, after what the server wrote until now. */
  cut(peerPort: number | undefined): void;
  cutAll(): void;
  /**
   * What is open now goes silent for good, with both ends still connected: what a peer sees of a machine that
   * lost its power. Connections made later work. Resolves when bytes were lost.
   */
  freeze(): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
}

export async function createRelay(serverPort: number): Promise<Relay> {
  const pairs = new Set<Pair>();
  let accepted = 0;
  const server = createServer({ noDelay: true }, (client) => {
    accepted++;
    const pair = { client, upstream: connect({ port: serverPort, host: "127.0.0.1", noDelay: true }) };
    pairs.add(pair);
    for (const socket of [pair.client, pair.upstream]) {
      socket.on("error", () => {});
      socket.on("close", () => void pair.client.end(() => cutPair(pair)));
    }
    client.pipe(pair.upstream).pipe(client);
  });

  const cutPair = (pair: Pair) => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.upstream.destroy();
  };

  /** What the server wrote is in our kernel already: two turns of the loop carry it over. */
  const cutAfterRelaying = async (pair: Pair) => {
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
    pair.upstream.destroy();
    pair.client.end(() => cutPair(pair));
  };

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    get open() {
      return pairs.size;
    },
    cut(peerPort) {
      for (const pair of pairs) if (pair.upstream.localPort === peerPort) void cutAfterRelaying(pair);
    },
    cutAll() {
      for (const pair of pairs) cutPair(pair);
    },
    freeze: () =>
      new Promise((resolve) => {
        for (const { client, upstream } of pairs) {
          upstream.unpipe(client).pause();
          client
            .unpipe(upstream)
            .on("data", () => resolve())
            .resume();
        }
      }),
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const pair of pairs) cutPair(pair);
      await closed;
    },
  };
}
