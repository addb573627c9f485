import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/**
 * A stretch of network between a client and a server on this machine. Frozen, it swallows what either side
 * sends and keeps both connections open: what a peer sees of a machine that lost its power.
 */
export interface Relay {
  readonly port: number;
  /** Connections that came through so far. */
  readonly accepted: number;
  /** Everything open now goes silent for good; connections made later work. Resolves when bytes were lost. */
  freeze(): Promise<void>;
  close(): Promise<void>;
}

export async function createRelay(serverPort: number): Promise<Relay> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let accepted = 0;
  const server = createServer((client) => {
    accepted++;
    const upstream = connect(serverPort, "127.0.0.1");
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.pipe(upstream);
    upstream.pipe(client);
    for (const socket of pair) {
      socket.on("error", () => {});
      socket.on("close", () => {
        pairs.delete(pair);
        for (const end of pair) end.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    freeze: () =>
      new Promise((resolve) => {
        for (const [client, upstream] of pairs) {
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
      for (const [client, upstream] of pairs) {
        client.destroy();
        upstream.destroy();
      }
      await closed;
    },
  };
}
