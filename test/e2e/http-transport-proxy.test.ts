import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { connect, createServer as createTcp, type AddressInfo, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Transport } from "../../src/kube/transport/transport.ts";
import { createLoopback, type Loopback } from "../contract/loopback.ts";

const PROTOCOLS = ["http/1.1", "https/1.1", "https/2"] as const;

let loopback: Loopback;
beforeEach(async () => {
  loopback = await createLoopback();
});
afterEach(() => loopback.close());

const get = (transport: Transport) => transport.request({ method: "GET", path: "/it" });
const errorOf = (transport: Transport): Promise<Error & { code: string }> =>
  get(transport).then(
    () => expect.unreachable("it succeeded"),
    (error: unknown) => error as Error & { code: string },
  );

describe("an HTTP proxy", () => {
  for (const protocol of PROTOCOLS) {
    test(`carries ${protocol}, with the login of its URL`, async () => {
      const server = await loopback.serve({ protocol });
      const proxy = await httpProxy({ login: "user:secret word" });

      const response = await get(
        loopback.connect(server.url, { proxyUrl: `http://user:secret%20word@127.0.0.1:${proxy.port}` }),
      );

      expect(response.status).toBe(200);
      expect(proxy.asked).toEqual([new URL(server.url).host]);
    });
  }

  test("that wants another login is unreachable, told without the one we have", async () => {
    const server = await loopback.serve({ protocol: "https/2" });
    const proxy = await httpProxy({ login: "user:other" });

    const error = await errorOf(
      loopback.connect(server.url, { proxyUrl: `http://user:opensesame@127.0.0.1:${proxy.port}` }),
    );

    expect(error.code).toBe("Unreachable");
    expect(error.message).toContain("answered 407; put the right user and password into proxy-url");
    expect(error.message).not.toContain("opensesame");
  });

  test("that does not run is unreachable", async () => {
    const server = await loopback.serve({ protocol: "https/2" });
    const proxy = await httpProxy({});
    await proxy.close();

    const error = await errorOf(loopback.connect(server.url, { proxyUrl: `http://127.0.0.1:${proxy.port}` }));

    expect(error).toMatchObject({ code: "Unreachable" });
  });
});

describe("a SOCKS 5 proxy", () => {
  for (const protocol of PROTOCOLS) {
    test(`carries ${protocol}`, async () => {
      const server = await loopback.serve({ protocol });
      const proxy = await socksProxy({ reply: 0 });

      const response = await get(
        loopback.connect(server.url, { proxyUrl: `socks5://127.0.0.1:${proxy.port}` }),
      );

      expect(response.status).toBe(200);
      expect(proxy.asked).toEqual([new URL(server.url).host]);
    });
  }

  test("is told names, not addresses, and given the login of its URL", async () => {
    const server = await loopback.serve({ protocol: "https/2" });
    const proxy = await socksProxy({ reply: 0, login: "user:secret" });
    const url = server.url.replace("127.0.0.1", "localhost");

    const response = await get(
      loopback.connect(url, { proxyUrl: `socks5://user:secret@127.0.0.1:${proxy.port}` }),
    );

    expect(response.status).toBe(200);
    expect(proxy.asked).toEqual([new URL(url).host]);
  });

  for (const [what, options, message] of [
    ["cannot reach the server", { reply: 5 }, 'answered "connection refused"'],
    ["refuses the login", { reply: 0, login: "user:other" }, "refused user and password"],
  ] as const) {
    test(`that ${what} is unreachable`, async () => {
      const server = await loopback.serve({ protocol: "https/2" });
      const proxy = await socksProxy(options);
      const login = "login" in options ? "user:opensesame@" : "";

      const error = await errorOf(
        loopback.connect(server.url, { proxyUrl: `socks5://${login}127.0.0.1:${proxy.port}` }),
      );

      expect(error.code).toBe("Unreachable");
      expect(error.message).toContain(message);
      expect(error.message).not.toContain("opensesame");
    });
  }
});

for (const [proxyUrl, message] of [
  ["ftp://proxy", /BadConfig: .*proxy-url ftp:\/\/ is not supported; use http, https or socks5/],
  ["not a url, but with opensesame", /^KubeError: BadConfig: GET \/it: proxy-url is not a URL such as http:/],
] as const) {
  test(`proxy-url "${proxyUrl}" is a mistake in the configuration`, async () => {
    const server = await loopback.serve({ protocol: "https/2" });

    const error = await errorOf(loopback.connect(server.url, { proxyUrl }));

    expect(String(error)).toMatch(message);
    expect(String(error)).not.toContain("opensesame");
  });
}

interface Proxy {
  readonly port: number;
  readonly asked: readonly string[];
  close(): Promise<void>;
}

async function httpProxy({ login }: { login?: string }): Promise<Proxy> {
  const asked: string[] = [];
  const server = createHttp();
  const expected = login === undefined ? undefined : `Basic ${Buffer.from(login).toString("base64")}`;
  server.on("connect", (request, client: Socket) => {
    if (expected !== undefined && request.headers["proxy-authorization"] !== expected) {
      client.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    asked.push(request.url ?? "");
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    join(client, Number(request.url?.split(":").at(-1)));
  });
  return started(server, asked);
}

/** Enough of RFC 1928 and 1929 for one client that waits for each answer, as ours does. */
async function socksProxy({ reply, login }: { reply: number; login?: string }): Promise<Proxy> {
  const asked: string[] = [];
  const next = async (client: Socket) => ((await once(client, "data")) as [Buffer])[0];
  const serve = async (client: Socket) => {
    client.on("error", () => {});
    await next(client);
    client.write(Buffer.from([5, login === undefined ? 0 : 2]));
    if (login !== undefined) {
      const given = await next(client);
      const user = given.subarray(2, 2 + given[1]!).toString();
      const password = given.subarray(3 + given[1]!).toString();
      const welcome = `${user}:${password}` === login;
      client.write(Buffer.from([1, welcome ? 0 : 1]));
      if (!welcome) return;
    }
    const command = await next(client);
    const host =
      command[3] === 1 ? [...command.subarray(4, 8)].join(".") : command.subarray(5, -2).toString();
    const port = command.readUInt16BE(command.length - 2);
    asked.push(`${host}:${port}`);
    client.write(Buffer.from([5, reply, 0, 1, 127, 0, 0, 1, 0, 0]));
    if (reply === 0) join(client, port);
  };
  return started(
    createTcp((client) => void serve(client)),
    asked,
  );
}

function join(client: Socket, port: number): void {
  const upstream = connect(port, "127.0.0.1");
  client.pipe(upstream).pipe(client);
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on("error", () => {});
    one.on("close", () => other.destroy());
  }
}

async function started(server: Server, asked: readonly string[]): Promise<Proxy> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy = {
    port: (server.address() as AddressInfo).port,
    asked,
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
  loopback.alsoClose(proxy);
  return proxy;
}
