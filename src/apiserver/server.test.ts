import { once } from "node:events";
import { connect, type ClientHttp2Session } from "node:http2";
import { request as httpsRequest, Agent } from "node:https";
import type { IncomingMessage } from "node:http";
import { connect as tlsConnect } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { silentLogger } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import type { Handler, HandlerRequest } from "../kube/handler.ts";
import { createAuthority, type CertificatePair } from "./certificates.ts";
import { startServer, type Server } from "./server.ts";

/** One authority for all of these: a key pair takes longer than most tests. */
let ca: string;
let serving: CertificatePair;
let admin: CertificatePair;
let stranger: CertificatePair;

beforeAll(async () => {
  const clock = createSystemClock();
  const authority = await createAuthority({ clock }, { commonName: "test", validForMs: 3_600_000 });
  const other = await createAuthority({ clock }, { commonName: "other", validForMs: 3_600_000 });
  ca = authority.certificate;
  serving = await authority.issueServer({
    names: ["localhost"],
    addresses: ["127.0.0.1"],
    validForMs: 3_600_000,
  });
  const user = { user: "alice", groups: ["devs", "ops"], validForMs: 3_600_000 };
  admin = await authority.issueClient(user);
  stranger = await other.issueClient(user);
});

/** Stopped at the end, with a minute's patience: a request or connection that is never let go fails the file. */
const running: Server[] = [];
afterAll(async () => {
  await Promise.all(running.map((server) => server.stop()));
});

async function given(handler: Handler) {
  const server = await startServer(
    { handler, clock: createSystemClock(), log: silentLogger },
    { host: "127.0.0.1", port: 0, tls: { ...serving, clientCa: ca }, stopMs: 60_000 },
  );
  running.push(server);
  return { server, port: server.address.port };
}

const echoUser: Handler = async ({ user, headers, method, path, body }) => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ user, method, path, length: body.length, accept: headers["accept"] }),
});

/** A watch that sends what it is told to and remembers how it ended. */
function createWatchHandler() {
  const signals: AbortSignal[] = [];
  const handler: Handler = async ({ signal }: HandlerRequest) => {
    signals.push(signal);
    async function* body() {
      yield "first\n";
      if (!signal.aborted) await once(signal, "abort");
      yield "last\n";
    }
    return { status: 200, headers: { "content-type": "application/json" }, body: body() };
  };
  return { handler, signals };
}

async function http1(
  port: number,
  options: {
    path?: string;
    method?: string;
    body?: string;
    pair?: CertificatePair;
    headers?: Record<string, string>;
  } = {},
) {
  const { pair, body, ...rest } = options;
  const agent = new Agent({ keepAlive: false });
  const request = httpsRequest({
    host: "127.0.0.1",
    port,
    ca,
    agent,
    ...(pair === undefined ? {} : { cert: pair.certificate, key: pair.key }),
    ...rest,
  });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { response, text: async () => (await response.setEncoding("utf8").toArray()).join("") };
}

function http2(port: number): ClientHttp2Session {
  return connect(`https://127.0.0.1:${port}`, { ca, cert: admin.certificate, key: admin.key });
}

describe("who is there", () => {
  test("a certificate of our authority is a user with groups, over both protocols", async () => {
    const { port } = await given(echoUser);
    const user = { name: "alice", groups: ["devs", "ops", "system:authenticated"] };

    const one = JSON.parse(await (await http1(port, { pair: admin, path: "/x?y=1" })).text()) as object;
    const session = http2(port);
    const stream = session.request({ ":path": "/x?y=1", accept: "a" });
    const two = JSON.parse((await stream.setEncoding("utf8").toArray()).join("")) as object;
    session.close();

    expect(one).toMatchObject({ user, method: "GET", path: "/x?y=1" });
    expect(two).toMatchObject({ user, method: "GET", path: "/x?y=1", accept: "a" });
  });

  test("no certificate is nobody, whose token is the handler's business; one of another authority is 401", async () => {
    const { port } = await given(echoUser);

    const nobody = await http1(port);
    const other = await http1(port, { pair: stranger });
    const token = await http1(port, { headers: { authorization: "Bearer x" } });

    expect(JSON.parse(await nobody.text())).not.toHaveProperty("user");
    expect([other.response.statusCode, token.response.statusCode]).toEqual([401, 200]);
    expect(JSON.parse(await other.text())).toMatchObject({
      kind: "Status",
      reason: "Unauthorized",
      code: 401,
    });
  });
});

describe("bodies", () => {
  test("3 MiB and a byte is 413 and is not read to the end", async () => {
    const { port } = await given(echoUser);

    const { response } = await http1(port, {
      method: "POST",
      pair: admin,
      body: "x".repeat(3 * 2 ** 20 + 1),
    });

    expect(response.statusCode).toBe(413);
    expect(response.headers.connection).toBe("close");
  });

  test("3 MiB arrives whole", async () => {
    const { port } = await given(echoUser);

    const { text } = await http1(port, { method: "POST", pair: admin, body: "x".repeat(3 * 2 ** 20) });

    expect(JSON.parse(await text())).toMatchObject({ length: 3 * 2 ** 20 });
  });

  test("text that is not UTF-8 is 400", async () => {
    const { port } = await given(echoUser);
    const session = http2(port);
    const stream = session.request({ ":path": "/", ":method": "POST" });
    stream.end(Buffer.from([0x7b, 0xff, 0x7d]));

    const [headers] = (await once(stream, "response")) as [{ ":status": number }];
    session.destroy();

    expect(headers[":status"]).toBe(400);
  });
});

describe("watches", () => {
  test("headers arrive before any event", async () => {
    async function* silence(signal: AbortSignal) {
      if (!signal.aborted) await once(signal, "abort");
      yield "";
    }
    const { port } = await given(async ({ signal }) => ({ status: 200, headers: {}, body: silence(signal) }));
    const session = http2(port);

    const { response } = await http1(port, { pair: admin });
    const [headers] = (await once(session.request({ ":path": "/" }), "response")) as [{ ":status": number }];

    expect([response.statusCode, headers[":status"]]).toEqual([200, 200]);
    response.destroy();
    session.destroy();
  });

  test("a client that goes away aborts the handler's signal, over both protocols", async () => {
    const { handler, signals } = createWatchHandler();
    const { port } = await given(handler);
    const session = http2(port);
    const stream = session.request({ ":path": "/" });
    const { response } = await http1(port, { pair: admin });
    await Promise.all([once(response, "data"), once(stream, "data")]);

    response.destroy();
    stream.close();
    for (const signal of signals) if (!signal.aborted) await once(signal, "abort");

    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    session.destroy();
  });

  test("a reader that stops reading stops the iteration, not the process's memory", async () => {
    let sent = 0;
    async function* flood(signal: AbortSignal) {
      while (!signal.aborted) {
        sent++;
        yield "x".repeat(64 * 1024);
      }
    }
    const { port } = await given(async ({ signal }) => ({ status: 200, headers: {}, body: flood(signal) }));
    const session = http2(port);
    const stream = session.request({ ":path": "/" });
    await once(stream, "response");

    // Other requests on the connection are answered although this one is stuck.
    for (let other = 0; other < 3; other++) {
      const another = session.request({ ":path": "/" });
      await once(another, "response");
      another.close();
    }

    expect(sent).toBeLessThan(200);
    session.destroy();
  });

  test("stopping ends them cleanly: the last line arrives, then the end", async () => {
    const { handler } = createWatchHandler();
    const { server, port } = await given(handler);
    const session = http2(port);
    const stream = session.request({ ":path": "/" });
    await once(stream, "response");
    const one = await http1(port, { pair: admin });
    const texts = [
      one.text(),
      stream
        .setEncoding("utf8")
        .toArray()
        .then((parts) => parts.join("")),
    ];

    await server.stop();

    expect(await Promise.all(texts)).toEqual(["first\nlast\n", "first\nlast\n"]);
    session.destroy();
  });
});

describe("stopping", () => {
  test("an idle connection does not hold it up, and nobody gets in any more", async () => {
    const { server, port } = await given(echoUser);
    const idle = tlsConnect({ host: "127.0.0.1", port, ca });
    await once(idle, "secureConnect");
    idle.resume();
    const closed = once(idle, "close");

    await server.stop();
    await closed;

    // Refused by the kernel, or reset by another test's server that has got the port since: its certificate is another.
    await expect(http1(port)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
  });

  test("a port that is taken is told to the caller", async () => {
    const { port } = await given(echoUser);

    const second = startServer(
      { handler: echoUser, clock: createSystemClock(), log: silentLogger },
      { host: "127.0.0.1", port, tls: { ...serving, clientCa: ca } },
    );

    await expect(second).rejects.toMatchObject({ code: "EADDRINUSE" });
  });
});
