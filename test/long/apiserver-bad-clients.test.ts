import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as tcpConnect } from "node:net";
import { createInterface } from "node:readline";
import { connect as tlsConnect, type TLSSocket } from "node:tls";
import { setImmediate as turn, setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { SimScheduler } from "../../src/sim/scheduler.ts";
import { serveBadInput, type BadInputServer } from "../e2e/bad-input.ts";

/** Clients that are slow, silent or many: each is answered or let go, and nobody else notices. */

const MAPS = "/api/v1/namespaces/default/configmaps";

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function given(options: Parameters<typeof serveBadInput>[0] = {}): Promise<BadInputServer> {
  const server = await serveBadInput(options);
  closing.push(() => server.stop());
  return server;
}

async function expectServed(server: BadInputServer): Promise<void> {
  for (const protocol of ["http/1.1", "http/2"] as const) {
    expect((await server.send(protocol, { path: MAPS })).status).toBe(200);
  }
  expect(server.faults).toEqual([]);
}

describe("slow clients", () => {
  const head = `POST ${MAPS} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n`;

  test("a body that stops arriving over HTTP/1.1 is 408 after a minute, and the connection is closed", async () => {
    const scheduler = new SimScheduler(createSeededRandom(1));
    const server = await given({ bodyClock: scheduler.createClock() });

    const answer = server.raw(`${head}{"metadata":`);
    await passTimeUntil(scheduler, answer);

    const text = await answer;
    expect(text).toMatch(/^HTTP\/1\.1 408 /);
    expect(text).toContain('"reason":"Timeout"');
    expect(text.toLowerCase()).toContain("connection: close");
    await expectServed(server);
  });

  test("a body that stops arriving over HTTP/2 is 408, and the other streams of the connection go on", async () => {
    const scheduler = new SimScheduler(createSeededRandom(2));
    const server = await given({ bodyClock: scheduler.createClock() });
    const session = connect(`https://127.0.0.1:${server.port}`, { ca: server.ca });
    closing.push(() => session.destroy());
    // Time passes in leaps here, and a connection that has not begun by then is closed.
    await once(session.request({ ":path": MAPS }), "response");

    const slow = session.request({ ":method": "POST", ":path": MAPS, "content-type": "application/json" });
    slow.on("error", () => undefined);
    slow.write('{"metadata":');
    const answer = once(slow, "response") as Promise<[Record<string, unknown>]>;
    await passTimeUntil(scheduler, answer);

    expect((await answer)[0][":status"]).toBe(408);
    await passTimeUntil(scheduler, once(slow.resume(), "close"), 10);
    expect(slow.rstCode).toBe(0);
    const next = session.request({ ":path": MAPS });
    expect(((await once(next, "response")) as [Record<string, unknown>])[0][":status"]).toBe(200);
    await expectServed(server);
  });

  test("300 connections in the middle of their headers do not keep anybody waiting", async () => {
    const server = await given();
    const sockets = await Promise.all(Array.from({ length: 300 }, () => openHalf(server)));
    closing.push(() => sockets.forEach((socket) => socket.destroy()));

    const startedAtMs = performance.now();
    await expectServed(server);

    // Far below any timeout.
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
  });

  test("a connection that never begins its TLS handshake is closed within seconds", async () => {
    const server = await given();
    const silent = tcpConnect({ host: "127.0.0.1", port: server.port });
    silent.on("error", () => undefined);
    closing.push(() => void silent.destroy());

    const startedAtMs = performance.now();
    await once(silent.resume(), "close");

    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    await expectServed(server);
  });
});

async function passTimeUntil(
  scheduler: SimScheduler,
  done: Promise<unknown>,
  stepMs = 60_001,
): Promise<void> {
  const state = { isDone: false };
  void done.finally(() => (state.isDone = true));
  // The server's clock moves a minute at a time until the request has arrived and its minute is over.
  while (!state.isDone) {
    await scheduler.runFor(stepMs);
    await turn();
  }
}

async function openHalf({ port, ca }: BadInputServer): Promise<TLSSocket> {
  const socket = tlsConnect({ host: "127.0.0.1", port, ca, ALPNProtocols: ["http/1.1"] });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  socket.write(`GET ${MAPS} HTTP/1.1\r\nhost: a\r\nx-slow: `);
  return socket;
}

describe("many clients", () => {
  /** What a watch may take at most in the server, connection included; 17 kB were measured. */
  const BYTES_A_WATCH_MAX = 64 * 1_024;
  const SESSIONS = 20;
  const STREAMS = 500;
  const WATCHES = SESSIONS * STREAMS;

  test("10,000 idle watches take bounded memory, all hear of a write, and leave nothing behind", async ({
    annotate,
  }) => {
    const server = await given();
    await expectServed(server);
    // A first write and a first few, so that what is loaded, compiled and watched by the server itself once is not counted.
    await write(server, "first");
    const own = server.watches.open;
    const few = await openWatches(server, { sessions: 1, streams: 200 });
    await few.close();
    const before = await memory();

    const many = await openWatches(server, { sessions: SESSIONS, streams: STREAMS });
    const during = await memory();
    expect(server.watches.open - own).toBe(WATCHES);
    await write(server, "news");
    await many.line(`seen ${WATCHES}`);
    await expectServed(server);
    await many.close();
    const after = await memory();

    const perWatch = (what: "rss" | "used") => Math.round((during[what] - before[what]) / WATCHES);
    await annotate(
      `a watch: ${perWatch("rss")} bytes of RSS, ${perWatch("used")} of heap and buffers; ` +
        `left after closing: ${mib(after.used - before.used)} MiB of heap and buffers, ` +
        `${mib(after.rss - before.rss)} of ${mib(during.rss - before.rss)} MiB of RSS`,
    );
    expect(perWatch("rss")).toBeLessThan(BYTES_A_WATCH_MAX);
    // V8 and the allocator keep pages for later, so only what is in use says whether something leaks.
    expect((after.used - before.used) / (during.used - before.used)).toBeLessThan(0.1);
    await expectServed(server);
  });
});

function write(server: BadInputServer, name: string) {
  const body = JSON.stringify({ metadata: { name } });
  return server.send("http/2", { method: "POST", path: MAPS, type: "application/json", body });
}

async function openWatches(server: BadInputServer, size: { sessions: number; streams: number }) {
  const before = server.watches.open;
  const path = `${MAPS}?watch=true&resourceVersion=${server.store.revision}`;
  const program = fileURLToPath(new URL("../e2e/idle-watches.mjs", import.meta.url));
  const input = JSON.stringify({ port: server.port, ca: server.ca, path, ...size });
  const child = spawn(process.execPath, [program, input], { stdio: ["pipe", "pipe", "inherit"] });
  closing.push(() => void child.kill("SIGKILL"));
  const line = follow(child);
  await line(`open ${size.sessions * size.streams}`);
  return {
    line,
    async close() {
      const gone = once(child, "exit");
      child.stdin.end();
      await gone;
      // The server hears of it from its sockets, a moment later.
      while (server.watches.open > before) await sleep(20);
    },
  };
}

function follow(child: ChildProcess): (wanted: string) => Promise<void> {
  const said: string[] = [];
  const changed = new Set<() => void>();
  createInterface({ input: child.stdout! }).on("line", (text) => {
    said.push(text);
    for (const check of changed) check();
  });
  return (wanted) =>
    new Promise((resolve, reject) => {
      const check = () => {
        if (said.includes(wanted)) resolve();
        const failure = said.find((text) => text.startsWith("failed"));
        if (failure !== undefined) reject(new Error(failure));
      };
      changed.add(check);
      check();
    });
}

/** After collecting garbage, with a moment for what the event loop still has to let go. */
async function memory(): Promise<{ rss: number; used: number }> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let round = 0; round < 3; round++) {
    await sleep(100);
    collect();
  }
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, used: heapUsed + external };
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
