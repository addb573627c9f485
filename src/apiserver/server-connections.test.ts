import { once } from "node:events";
import { connect, constants, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { connect as tlsConnect } from "node:tls";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { createSystemClock } from "../base/system-clock.ts";
import type { Handler } from "../kube/handler.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { createAuthority, type CertificatePair } from "./certificates.ts";
import { connectFrames, type FrameClient } from "./server-frames.testing.ts";
import { startServer, type ServerOptions } from "./server.ts";

let ca: string;
let serving: CertificatePair;

beforeAll(async () => {
  const clock = createSystemClock();
  const authority = await createAuthority({ clock }, { commonName: "test", validForMs: 3_600_000 });
  ca = authority.certificate;
  serving = await authority.issueServer({ names: [], addresses: ["127.0.0.1"], validForMs: 3_600_000 });
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Its deadlines pass on simulated time; `pass` lets some, with what arrives in the meantime. */
async function given(handler: Handler, options: Partial<ServerOptions> = {}) {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const server = await startServer(
    { handler, clock: scheduler.createClock(), log: silentLogger },
    { host: "127.0.0.1", port: 0, tls: { ...serving, clientCa: ca }, ...options },
  );
  const { port } = server.address;
  closing.push(() => passUntil(scheduler, server.stop()));
  return {
    server,
    port,
    scheduler,
    dial: () => dial(port),
    frames: async (): Promise<FrameClient> => {
      const client = await connectFrames({ port, ca });
      closing.push(() => void client.socket.destroy());
      return client;
    },
  };
}

function dial(port: number): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${port}`, { ca, maxSessionMemory: 256 });
  session.on("error", () => undefined); // the streams tell
  closing.push(() => session.destroy());
  return session;
}

async function dialHttp1(port: number) {
  const socket = tlsConnect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["http/1.1"] });
  closing.push(() => void socket.destroy());
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  const closed = once(socket, "close");
  await once(socket, "secureConnect");
  return { socket, closed, text: () => text };
}

function post(path: string): string {
  return `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n`;
}

/** A second at a time, or less, until it has happened. */
async function passUntil<T>(scheduler: SimScheduler, done: Promise<T>, stepMs = 1_000): Promise<T> {
  const state = { isDone: false };
  void done.finally(() => (state.isDone = true)).catch(() => undefined);
  while (!state.isDone) {
    await scheduler.runFor(stepMs);
    await turn();
  }
  return done;
}

const hello: Handler = async () => ({ status: 200, headers: {}, body: "hello" });

/** GET is a watch that says a word and waits for its end; POST waits until it is let go; all are remembered. */
function createSlowHandler() {
  const asked: string[] = [];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const handler: Handler = async ({ method, path, signal }) => {
    asked.push(`${method} ${path}`);
    async function* watch() {
      yield "first\n";
      if (!signal.aborted) await once(signal, "abort");
      yield "last\n";
    }
    if (method === "GET") return { status: 200, headers: {}, body: watch() };
    await released;
    return { status: 201, headers: {}, body: "kept" };
  };
  return { handler, asked, release };
}

async function statusOf(stream: ClientHttp2Stream): Promise<unknown> {
  const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
  return headers[":status"];
}

describe("a body that is refused over HTTP/2", () => {
  test("is answered, and its stream closes without an error while others go on", async () => {
    const { dial, scheduler } = await given(hello);
    const session = dial();
    const large = session.request({ ":method": "POST", ":path": "/" });
    const closed = once(large, "close");
    large.resume();
    large.end("x".repeat(4 * 2 ** 20));

    expect(await statusOf(large)).toBe(413);
    await passUntil(scheduler, closed, 10);

    expect(large.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
    expect(await statusOf(session.request({ ":path": "/" }))).toBe(200);
  });

  test("has its reset behind the whole answer, so that no client drops the answer for it", async () => {
    const { frames, scheduler } = await given(hello);
    const client = await frames();
    client.begin();
    client.request(1, { method: "POST", path: "/", endStream: false });
    // As the window allows, 64 KiB at first: half of that, and again for every update.
    for (let sent = 0; sent <= 3 * 2 ** 20; sent += 32_768) {
      while (countOf(client, 8, 1) < sent / 32_768 - 1) await turn();
      client.data(1, 32_768);
    }

    await client.frame("headers", 1);
    const reset = await passUntil(scheduler, client.frame("reset", 1), 10);

    expect(reset.payload.readUInt32BE(0)).toBe(constants.NGHTTP2_NO_ERROR);
    const types = client.frames.filter(({ type, streamId }) => streamId === 1 && type !== 8);
    expect(types.map(({ type, flags }) => `${type} ${flags & 1}`).slice(-2)).toEqual(["0 1", "3 0"]);
  });
});

function countOf({ frames }: FrameClient, type: number, streamId: number): number {
  return frames.filter((frame) => frame.type === type && frame.streamId === streamId).length;
}

describe("silence", () => {
  test("headers that trickle over HTTP/1.1 are 408 at the limit, not at twice that", async () => {
    const { port } = await given(hello, { headersMs: 500 });
    const slow = await dialHttp1(port);

    const startedAtMs = performance.now();
    slow.socket.write("GET / HTTP/1.1\r\nhost: a\r\nx-slow: ");
    await slow.closed;

    expect(slow.text()).toMatch(/^HTTP\/1\.1 408 /);
    // Node looks at its connections once a second.
    expect(performance.now() - startedAtMs).toBeLessThan(4_000);
  });

  test("a connection that agreed on HTTP/2 and says nothing is closed after 10 s", async () => {
    const { frames, scheduler } = await given(hello);
    const silent = await frames();
    await silent.frame("settings");

    await scheduler.runFor(9_999);
    const state = { isClosed: false };
    void silent.closed.then(() => (state.isClosed = true));
    await turn();
    expect(state.isClosed).toBe(false);
    await scheduler.runFor(1);

    await silent.closed;
  });

  test("so is one that sends the preface and nothing after it", async () => {
    const { frames, scheduler } = await given(hello);
    const silent = await frames();
    silent.socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

    await passUntil(scheduler, silent.closed);

    expect(scheduler.nowMs).toBeLessThanOrEqual(60_000);
  });

  test("one that never asks for anything is told to go after three minutes, then closed", async () => {
    const { frames, scheduler } = await given(hello);
    const idle = await frames();
    idle.begin();
    idle.ping();
    await idle.frame("ping");

    await scheduler.runFor(179_000);
    expect(idle.frames.some(({ type }) => type === 7)).toBe(false);
    await scheduler.runFor(1_000);

    const goaway = await idle.frame("goaway");
    expect(goaway.payload.readUInt32BE(4)).toBe(constants.NGHTTP2_NO_ERROR);
    await passUntil(scheduler, idle.closed);
  });

  test("pings and requests are signs of life", async () => {
    const { frames, scheduler } = await given(hello);
    const client = await frames();
    client.begin();
    for (let round = 0; round < 4; round++) {
      const before = countOf(client, 6, 0);
      client.ping();
      while (countOf(client, 6, 0) === before) await turn();
      await scheduler.runFor(150_000);
    }
    client.request(1, { method: "GET", path: "/", endStream: true });
    await client.frame("data", 1);
    await turn();
    await scheduler.runFor(150_000);

    expect(client.frames.some(({ type }) => type === 7)).toBe(false);
    await passUntil(scheduler, client.closed);
  });

  test("a watch is never cut, however long nothing happens, and its connection goes on after it", async () => {
    const { handler } = createSlowHandler();
    const { dial, scheduler } = await given(handler);
    const session = dial();
    const watch = session.request({ ":path": "/" });
    await once(watch, "data");

    await scheduler.runFor(24 * 3_600_000);
    await turn();

    expect([watch.closed, session.closed, session.destroyed]).toEqual([false, false, false]);
    watch.close();
    await once(watch, "close");
    expect(await statusOf(session.request({ ":path": "/" }))).toBe(200);
  });

  test("a request that meets the farewell of an idle connection is not run", async () => {
    const { handler, asked } = createSlowHandler();
    const { frames, scheduler } = await given(handler);
    const idle = await frames();
    idle.begin();
    idle.ping();
    await idle.frame("ping");
    await scheduler.runFor(180_000);

    idle.request(1, { method: "POST", path: "/late", endStream: true });
    const goaway = await idle.frame("goaway");
    await passUntil(scheduler, idle.closed);

    expect(goaway.payload.readUInt32BE(0)).toBe(0);
    expect(asked).toEqual([]);
  });
});

describe("stopping", () => {
  test("what arrives after the farewell is never run; what came before is answered", async () => {
    const { handler, asked, release } = createSlowHandler();
    const { server, frames } = await given(handler);
    const client = await frames();
    client.begin();
    client.request(1, { method: "POST", path: "/before", endStream: true });
    while (asked.length === 0) await turn();

    const stopped = server.stop();
    const goaway = await client.frame("goaway");
    client.request(3, { method: "POST", path: "/after", endStream: true });
    client.ping();
    await client.frame("ping");
    release();
    await client.frame("data", 1);
    client.socket.end();
    await stopped;

    expect(goaway.payload.readUInt32BE(0)).toBe(1);
    expect(asked).toEqual(["POST /before"]);
  });

  test("a client that does not read the farewell has its later requests refused all the same", async () => {
    const asked: string[] = [];
    const handler: Handler = async ({ method, path, signal }) => {
      asked.push(`${method} ${path}`);
      async function* flood() {
        while (!signal.aborted) yield "x".repeat(2 ** 20);
      }
      return { status: 200, headers: {}, body: method === "GET" ? flood() : "kept" };
    };
    const { server, frames, scheduler } = await given(handler, { stopMs: 2_000 });
    const client = await frames();
    client.socket.pause();
    client.begin({ unlimited: true });
    client.request(1, { method: "GET", path: "/flood", endStream: true });
    while (asked.length === 0) await turn();
    // Until its socket is full, and the farewell has to wait behind the flood.
    for (let round = 0; round < 200; round++) await turn();

    const stopped = server.stop();
    client.request(3, { method: "POST", path: "/after", endStream: true });
    for (let round = 0; round < 50; round++) await turn();
    await passUntil(scheduler, stopped);

    expect(asked).toEqual(["GET /flood"]);
  });

  test("over HTTP/1.1 a request in progress is answered with `connection: close`, one behind it not run", async () => {
    const { handler, asked, release } = createSlowHandler();
    const { server, port } = await given(handler);
    const client = await dialHttp1(port);
    client.socket.write(post("/before"));
    while (asked.length === 0) await turn();

    const stopped = server.stop();
    client.socket.write(post("/after"));
    for (let round = 0; round < 20; round++) await turn();
    release();
    await client.closed;
    await stopped;

    expect(asked).toEqual(["POST /before"]);
    expect(client.text()).toMatch(/^HTTP\/1\.1 201 [^]*connection: close/i);
  });

  test("over HTTP/1.1 a request that comes too late is 503 with leave to send it again, and not run", async () => {
    const { handler, asked, release } = createSlowHandler();
    const { server, port } = await given(handler);
    const busy = await dialHttp1(port);
    busy.socket.write(post("/before"));
    const late = await dialHttp1(port);
    while (asked.length === 0) await turn();

    const stopped = server.stop();
    late.socket.write(post("/after"));
    await late.closed;
    release();
    await stopped;

    expect(asked).toEqual(["POST /before"]);
    expect(late.text()).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*connection: close/i);
  });

  test("ends although requests, watches and silent connections hold on", async () => {
    const { handler, asked } = createSlowHandler();
    const { server, port, frames, scheduler } = await given(handler, { stopMs: 5_000 });
    const half = await frames();
    half.begin();
    half.request(1, { method: "POST", path: "/never", endStream: true });
    half.request(3, { method: "POST", path: "/half", endStream: false });
    half.request(5, { method: "GET", path: "/watch", endStream: true });
    const silent = await frames();
    const deaf = await frames();
    deaf.begin();
    deaf.socket.pause();
    deaf.request(1, { method: "GET", path: "/watch", endStream: true });
    while (asked.length < 3) await turn();

    const beganAtMs = scheduler.nowMs;
    await passUntil(scheduler, server.stop());

    expect(scheduler.nowMs - beganAtMs).toBeLessThanOrEqual(6_000);
    await Promise.all([half.closed, silent.closed]);
    expect(lastLineOf(half, 5)).toBe("last\n");
    await expect(once(tlsConnect({ host: "127.0.0.1", port, ca }), "secureConnect")).rejects.toThrow(
      /ECONNREFUSED/,
    );
  });
});

function lastLineOf({ frames }: FrameClient, streamId: number): string | undefined {
  const texts = frames.filter(
    ({ type, streamId: id, payload }) => type === 0 && id === streamId && payload.length > 0,
  );
  return texts.at(-1)?.payload.toString();
}
