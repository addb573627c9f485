import { once } from "node:events";
import { constants, createSecureServer } from "node:http2";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Transport, TransportStream } from "../../src/kube/transport/transport.ts";
import {
  answer,
  cutBeforeHeaders,
  halfOpen,
  scripted,
  silentWatch,
  type Behaviour,
} from "../contract/faults.ts";
import type { FaultyServerOptions } from "../contract/faulty-server.ts";
import { createLoopback, type Loopback } from "../contract/loopback.ts";
import { transportContract, type Capability } from "../contract/transport.ts";

for (const [protocol, can] of [
  ["http/1.1", ["unreachable"]],
  ["https/1.1", ["unreachable"]],
  ["https/2", ["unreachable", "streams on one connection", "go away"]],
] as const satisfies readonly (readonly [FaultyServerOptions["protocol"], readonly Capability[]])[]) {
  transportContract(
    protocol,
    async () => {
      const loopback = await createLoopback();
      const server = await loopback.serve({ protocol });
      return {
        server,
        transport: loopback.connect(server.url),
        withCredentials: (credentials) => loopback.connect(server.url, { credentials }),
        async unreachable() {
          const gone = await loopback.serve({ protocol });
          await gone.close();
          return loopback.connect(gone.url);
        },
        close: () => loopback.close(),
      };
    },
    { can },
  );
}

let loopback: Loopback;
beforeEach(async () => {
  loopback = await createLoopback();
});
afterEach(() => loopback.close());

const get = (transport: Transport, path: string, signal?: AbortSignal) =>
  transport.request({ method: "GET", path, signal });
const watch = (transport: Transport, path: string) => transport.stream({ method: "GET", path });
const leave = async (stream: TransportStream) => {
  await stream.body[Symbol.asyncIterator]().return?.();
};
const failure = (work: Promise<unknown>) =>
  work.then(
    () => expect.unreachable("it succeeded"),
    (error: unknown) => error,
  );
const drain = async (stream: TransportStream) => {
  for await (const _chunk of stream.body) continue;
};

describe("connections", () => {
  for (const [streamsMax, connectionsMax] of [
    [1_000, 1],
    [250, 2],
    [100, 5],
  ] as const) {
    test(`HTTP/2: 200 watches and 200 requests take ${connectionsMax} of ${streamsMax} streams`, async () => {
      const server = await loopback.serve({ protocol: "https/2", streamsMax });
      const transport = loopback.connect(server.url);
      server.on("/watch", silentWatch());

      const streams = await Promise.all(Array.from({ length: 200 }, () => watch(transport, "/watch")));
      await Promise.all(Array.from({ length: 200 }, () => get(transport, "/it")));

      expect(server.connections.accepted).toBeLessThanOrEqual(connectionsMax);
      await Promise.all(streams.map(leave));
    });
  }

  test("HTTP/1.1: 200 watches hold 200 connections and requests share what is left over", async () => {
    const server = await loopback.serve({ protocol: "http/1.1" });
    const transport = loopback.connect(server.url);
    server.on("/watch", silentWatch());

    const streams = await Promise.all(Array.from({ length: 200 }, () => watch(transport, "/watch")));
    for (let round = 0; round < 20; round++) await get(transport, "/it");

    expect(server.connections.accepted).toBeLessThanOrEqual(202);
    await Promise.all(streams.map(leave));
  });

  for (const protocol of ["http/1.1", "https/1.1"] as const) {
    test(`${protocol}: watches that are left are not replaced by connections nobody asked for`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url);
      const watches = Array.from({ length: 20 }, () => scripted());
      server.on("/watch", ...(watches.map(({ behaviour }) => behaviour) as [Behaviour, ...Behaviour[]]));
      const streams = await Promise.all(watches.map(() => watch(transport, "/watch")));
      const before = server.connections.accepted;

      await Promise.all(streams.map(leave));
      await Promise.all(watches.map(async ({ reply }) => (await reply).closed));
      await get(transport, "/it");

      expect(server.connections.accepted).toBe(before + 1);
    });
  }

  for (const protocol of ["http/1.1", "https/1.1", "https/2"] as const) {
    test(`${protocol}: one after the other, whatever the method and status, they share one or two`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url);
      server.on("/missing", answer({ status: 404, body: "{}" }));

      for (let round = 0; round < 10; round++) {
        await get(transport, "/it");
        await get(transport, "/missing");
        await transport.request({ method: "PATCH", path: "/it", body: "{}" });
        await transport.request({ method: "DELETE", path: "/it", body: "{}" });
      }

      // undici opens a second one for a request that begins in the very turn in which the last one ended.
      expect(server.connections.accepted).toBeLessThanOrEqual(2);
    });

    test(`${protocol}: a write on a kept connection that dies is not sent again`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url);
      server.on("/it", answer(), cutBeforeHeaders());
      await transport.request({ method: "POST", path: "/it", body: "1" });

      const error = await failure(transport.request({ method: "POST", path: "/it", body: "2" }));

      expect(error).toMatchObject({ code: "ConnectionLost" });
      expect(server.seen.map(({ body }) => body)).toEqual(["1", "2"]);
    });

    test(`${protocol}: all that a dead connection carried fails, and everything works again after`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url);
      server.on("/hang", halfOpen());
      const hanging = Array.from({ length: 10 }, () =>
        failure(transport.request({ method: "POST", path: "/hang", body: "{}" })),
      );
      await server.arrived("/hang", 10);

      server.cutAll();

      for (const error of await Promise.all(hanging)) expect(error).toMatchObject({ code: "ConnectionLost" });
      expect((await get(transport, "/it")).status).toBe(200);
      expect(server.seen.filter(({ path }) => path === "/hang")).toHaveLength(10);
    });

    test(`${protocol}: a peer that vanished holds nobody up who comes after a deadline`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url);
      // Two at least stay unused over HTTP/1.1.
      await Promise.all(Array.from({ length: 8 }, () => get(transport, "/it")));
      await get(transport, "/it");
      const before = server.connections.accepted;
      const deadline = new AbortController();

      const swallowed = server.freeze();
      const stuck = failure(get(transport, "/it", deadline.signal));
      await swallowed;
      deadline.abort(new Error("deadline"));

      expect(await stuck).toBe(deadline.signal.reason);
      expect((await get(transport, "/it")).status).toBe(200);
      expect(server.connections.accepted).toBe(before + 1);
    });
  }

  test("HTTP/2: streams of a peer that vanished are lost once it leaves a ping unanswered", async () => {
    const server = await loopback.serve({ protocol: "https/2" });
    const health = { pingEveryMs: 20, pingTimeoutMs: 50 };
    const transport = loopback.connect(server.url, {}, { health });
    server.on("/watch", silentWatch());
    const stream = await watch(transport, "/watch");

    void server.freeze();

    expect(await failure(drain(stream))).toMatchObject({ code: "ConnectionLost" });
    expect((await get(transport, "/it")).status).toBe(200);
  });

  test("HTTP/2: pings keep a silent watch that is well", async () => {
    const server = await loopback.serve({ protocol: "https/2" });
    const transport = loopback.connect(server.url, {}, { health: { pingEveryMs: 5, pingTimeoutMs: 5_000 } });
    const { behaviour, reply } = scripted();
    server.on("/watch", behaviour);
    const body = (await watch(transport, "/watch")).body[Symbol.asyncIterator]();

    for (let round = 0; round < 50; round++) await get(transport, "/it");
    await (await reply).write("still here");

    expect(Buffer.from((await body.next()).value).toString()).toBe("still here");
    await body.return?.();
  });

  test("HTTP/2: a request given up by its caller does not cost a connection that is well", async () => {
    const server = await loopback.serve({ protocol: "https/2" });
    const transport = loopback.connect(server.url);
    server.on("/hang", halfOpen());
    server.on("/watch", silentWatch());
    const stream = await watch(transport, "/watch");

    for (let round = 0; round < 5; round++) {
      const deadline = new AbortController();
      const waiting = failure(get(transport, "/hang", deadline.signal));
      await server.arrived("/hang", round + 1);
      deadline.abort(new Error("deadline"));
      await waiting;
      await get(transport, "/it");
    }

    expect(server.connections.open).toBeLessThanOrEqual(2);
    await leave(stream);
  });

  test("a server that accepts and says nothing is given up at the caller's deadline", async () => {
    const silent = createServer();
    const sockets: Socket[] = [];
    silent.on("connection", (socket: Socket) => sockets.push(socket));
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const transport = loopback.connect(`https://127.0.0.1:${(silent.address() as AddressInfo).port}`);
    const deadline = new AbortController();

    const waiting = failure(get(transport, "/it", deadline.signal));
    await once(silent, "connection");
    deadline.abort(new Error("deadline"));

    expect(await waiting).toBe(deadline.signal.reason);
    await once(sockets[0]!, "close");
    silent.close();
  });

  test("HTTP/2: a stream that the server refuses was never looked at", async () => {
    const names = { names: [], addresses: ["127.0.0.1"], validForMs: 60_000 };
    const { certificate, key } = await loopback.authority.issueServer(names);
    const refusing = createSecureServer({ cert: certificate, key });
    refusing.on("stream", (stream) => stream.on("error", () => {}).close(constants.NGHTTP2_REFUSED_STREAM));
    refusing.listen(0, "127.0.0.1");
    await once(refusing, "listening");
    const transport = loopback.connect(`https://127.0.0.1:${(refusing.address() as AddressInfo).port}`);

    const error = await failure(transport.request({ method: "POST", path: "/it", body: "{}" }));

    expect(error).toMatchObject({ code: "Unreachable", outcomeUnknown: false });
    await transport.close();
    refusing.close();
  });
});

describe("what is sent", () => {
  for (const protocol of ["http/1.1", "https/2"] as const) {
    test(`${protocol}: below the prefix of the server's URL, for whom we act, and uncompressed`, async () => {
      const server = await loopback.serve({ protocol });
      const impersonation = { "Impersonate-User": "ada", "Impersonate-Group": ["ops", "dev"] };
      const transport = loopback.connect(
        `${server.url}/k8s/clusters/c1/`,
        { impersonation },
        { userAgent: "mooring/0.1.0" },
      );

      await get(transport, "/api/v1/pods?limit=1");

      expect(server.seen[0]!.path).toBe("/k8s/clusters/c1/api/v1/pods?limit=1");
      expect(server.seen[0]!.headers).toMatchObject({
        "user-agent": "mooring/0.1.0",
        "impersonate-user": "ada",
        "impersonate-group": ["ops", "dev"],
      });
      expect(server.seen[0]!.headers).not.toHaveProperty("accept-encoding");
    });

    test(`${protocol}: a path that HTTP cannot carry is our mistake, not the server's`, async () => {
      const server = await loopback.serve({ protocol });

      const error = await failure(get(loopback.connect(server.url), "/a b\n"));

      expect(error).toMatchObject({ code: "BadInput" });
      expect(server.seen).toHaveLength(0);
    });
  }
});

describe("what comes back", () => {
  for (const protocol of ["http/1.1", "https/2"] as const) {
    test(`${protocol}: an answer past the bound is refused with advice, and its connection is not wedged`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url, {}, { responseBytesMax: 1_000 });
      server.on("/fits", answer({ body: "x".repeat(1_000) }));
      server.on("/long", answer({ body: "x".repeat(1_001) }));
      server.on("/longer", answer({ body: "x".repeat(10_000_000) }));

      expect((await get(transport, "/fits")).body).toHaveLength(1_000);
      for (const path of ["/long", "/longer"]) {
        const error = await failure(get(transport, path));
        expect(error).toMatchObject({ code: "BadResponse" });
        expect(String(error)).toMatch(/longer than 1000 bytes; ask for less, with `limit`/);
      }
      expect((await get(transport, "/fits")).body).toHaveLength(1_000);
    });

    test(`${protocol}: a body in an encoding nobody asked for is refused`, async () => {
      const server = await loopback.serve({ protocol });
      const transport = loopback.connect(server.url);
      server.on("/it", answer({ headers: { "content-encoding": "gzip" }, body: "\u001f" }));

      const error = await failure(get(transport, "/it"));

      expect(error).toMatchObject({ code: "BadResponse" });
      expect(String(error)).toContain("encoded as gzip");
    });
  }

  for (const [what, bytes, code] of [
    ["not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", "BadResponse"],
    ["a broken chunk length", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "BadResponse"],
    ["half a header", "HTTP/1.1 200 OK\r\ncontent-le", "ConnectionLost"],
    ["a body shorter than promised", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n12", "ConnectionLost"],
  ] as const) {
    test(`an answer that is ${what} is ${code}`, async () => {
      const raw = createServer((socket) => socket.once("data", () => socket.end(bytes)));
      raw.listen(0, "127.0.0.1");
      await once(raw, "listening");
      const transport = loopback.connect(`http://127.0.0.1:${(raw.address() as AddressInfo).port}`);

      expect(await failure(get(transport, "/it"))).toMatchObject({ code, outcomeUnknown: true });
      raw.close();
    });
  }
});
