import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../src/base/log.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { text } from "../../src/processes/endpoint.ts";
import { startHttpEndpoint, type HttpEndpoint } from "../../src/processes/http-endpoint.ts";

/** The socket of a process's pages; what they say is tested without one. */

let endpoint: HttpEndpoint;
let lines: string[];
const sockets: Socket[] = [];

beforeEach(async () => {
  lines = [];
  const log = createLogger((_, message) => lines.push(message));
  const routes = {
    "/page": () => text(200, "größer"),
    "/broken": () => {
      throw new Error("a secret of the inside");
    },
  };
  endpoint = await startHttpEndpoint(
    { clock: createSystemClock(), log },
    { host: "127.0.0.1", port: 0, routes },
  );
});

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await endpoint.stop();
});

async function dial(): Promise<Socket> {
  const socket = connect(Number(new URL(endpoint.url).port), "127.0.0.1").setEncoding("utf8");
  sockets.push(socket);
  await once(socket, "connect");
  return socket;
}

/** Everything the server says until it hangs up. */
async function heard(socket: Socket): Promise<string> {
  let said = "";
  for await (const chunk of socket) said += chunk as string;
  return said;
}

test("an answer has its length in bytes, and is not kept or guessed at by anybody", async () => {
  const response = await fetch(`${endpoint.url}/page`);

  expect(await response.text()).toBe("größer");
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-length": "8",
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-cache, private",
    "x-content-type-options": "nosniff",
  });
});

test("a page that fails is 500, tells the log and nobody else", async () => {
  const response = await fetch(`${endpoint.url}/broken`);

  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain("secret");
  expect(lines).toEqual(["endpoint failed to answer"]);
  expect((await fetch(`${endpoint.url}/page`)).status).toBe(200);
});

describe("a client that misbehaves", () => {
  test("by sending its request slowly is cut off after 5 s; others are served meanwhile", async () => {
    const slow = await dial();
    slow.write("GET /page HTTP/1.1\r\nHost: x\r\nX-Slow: ");

    expect((await fetch(`${endpoint.url}/page`)).status).toBe(200);
    expect(await heard(slow)).toContain("408 Request Timeout");
  });

  test("by announcing a body and not sending it gets its answer, then is cut off", async () => {
    const socket = await dial();
    socket.write("GET /page HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");

    expect(await heard(socket)).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  test("by not speaking HTTP is told so", async () => {
    const socket = await dial();
    socket.write("hello\r\n\r\n");

    expect(await heard(socket)).toMatch(/^HTTP\/1\.1 400 /);
  });

  test("by staying connected does not keep the process from ending", async () => {
    const idle = await dial();
    const half = await dial();
    half.write("GET /pa");

    const [stopped] = await Promise.all([endpoint.stop().then(() => "stopped"), once(idle, "close")]);

    expect(stopped).toBe("stopped");
    endpoint = await startHttpEndpoint(
      { clock: createSystemClock(), log: createLogger(() => undefined) },
      { host: "127.0.0.1", port: 0, routes: {} },
    );
  });
});
