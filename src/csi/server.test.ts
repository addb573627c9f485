import { existsSync, lstatSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectHttp2 } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogger, silentLogger, type LogFields } from "../base/log.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { CsiError } from "./errors.ts";
import { Controller, Identity } from "./gen/csi_pb.ts";
import { createGrpcChannel } from "./grpc-channel.ts";
import { createClient, serve, type CallRecord, type Channel, type ServedMethod } from "./methods.ts";
import { createCsiServer, type CsiServer } from "./server.ts";

const clock = createSystemClock();
const within = { timeoutMs: 10_000 };
const identity = serve(Identity, { probe: async () => ({ ready: true }) });

let folder: string;
let socketPath: string;
const servers: CsiServer[] = [];
const channels: Channel[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "csi-"));
  socketPath = join(folder, "csi.sock");
});
afterEach(async () => {
  for (const channel of channels.splice(0)) channel.close();
  for (const server of servers.splice(0)) await server.stop({ graceMs: 0 });
  await rm(folder, { recursive: true });
});

function given(
  served: readonly ServedMethod[] = identity,
  extra: Partial<Parameters<typeof createCsiServer>[0] & { mode: number }> = {},
): CsiServer {
  const { mode, ...deps } = extra;
  const server = createCsiServer(
    { clock, log: silentLogger, ...deps },
    { socketPath, served, ...(mode === undefined ? {} : { mode }) },
  );
  servers.push(server);
  return server;
}

function dial(): Channel {
  const channel = createGrpcChannel({ clock }, { socketPath });
  channels.push(channel);
  return channel;
}

const probe = () => createClient(Identity, dial()).probe({}, within);

describe("the socket file", () => {
  test("is its owner's alone, or has the mode asked for", async () => {
    await given().start();
    expect(lstatSync(socketPath).mode & 0o777).toBe(0o600);
    await servers.pop()!.stop({ graceMs: 0 });

    await given(identity, { mode: 0o660 }).start();

    expect(lstatSync(socketPath).mode & 0o777).toBe(0o660);
  });

  test("is gone after a stop", async () => {
    const server = given();
    await server.start();

    await server.stop({ graceMs: 0 });

    expect(existsSync(socketPath)).toBe(false);
  });

  test("left behind by a dead process is replaced", async () => {
    await leaveStaleSocket(socketPath);

    await given().start();

    expect((await probe()).ready).toBe(true);
  });

  test("with somebody behind it is left alone, and the start is refused", async () => {
    await given().start();

    const second = given();

    await expect(second.start()).rejects.toMatchObject({ code: "FAILED_PRECONDITION" });
    await second.stop({ graceMs: 0 });
    expect((await probe()).ready).toBe(true);
  });

  test("is never made where another file is", async () => {
    writeFileSync(socketPath, "precious");

    await expect(given().start()).rejects.toMatchObject({ code: "FAILED_PRECONDITION" });

    expect(lstatSync(socketPath).size).toBe(8);
  });

  test("of a successor survives the stop of its predecessor", async () => {
    const old = given();
    await old.start();
    renameSync(socketPath, join(folder, "moved.sock"));
    await given().start();

    await old.stop({ graceMs: 0 });

    expect((await probe()).ready).toBe(true);
  });

  test("in a folder that is not there: the start fails and says so", async () => {
    socketPath = join(folder, "missing", "csi.sock");

    await expect(given().start()).rejects.toThrow(/ENOENT/);
  });
});

describe("stopping", () => {
  test("running calls finish, new ones are refused", async () => {
    let finish = () => {};
    let entered = () => {};
    const inHandler = new Promise<void>((resolve) => (entered = resolve));
    const server = given(
      serve(Identity, {
        probe: () => {
          entered();
          return new Promise((resolve) => (finish = () => resolve({ ready: false })));
        },
      }),
    );
    await server.start();
    const running = probe();
    await inHandler;

    const stopped = server.stop({ graceMs: 10_000 });
    await expect(probe()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    finish();

    expect((await running).ready).toBe(false);
    expect(await stopped).toEqual({ unfinished: 0 });
  });

  test("a handler that does not end is counted, not waited for beyond the grace", async () => {
    let entered = () => {};
    const inHandler = new Promise<void>((resolve) => (entered = resolve));
    const server = given(
      serve(Identity, {
        probe: () => {
          entered();
          return new Promise(() => undefined);
        },
      }),
    );
    await server.start();
    const running = probe().catch((error: unknown) => error);
    await inHandler;

    expect(await server.stop({ graceMs: 20 })).toEqual({ unfinished: 1 });
    expect(await running).toMatchObject({ code: "UNAVAILABLE", class: "uncertain" });
  });

  test("an idle connection does not delay it", async () => {
    const server = given();
    await server.start();
    await probe();
    const startedAtMs = clock.now();

    await server.stop({ graceMs: 30_000 });

    expect(clock.now() - startedAtMs).toBeLessThan(5_000);
  });
});

describe("what the log and the metrics see", () => {
  test("requests and answers without secrets; failures with their code; a bug with its cause", async () => {
    const lines: [string, LogFields][] = [];
    const calls: CallRecord[] = [];
    const log = createLogger((_, message, fields) => lines.push([message, fields]));
    const served = serve(Controller, {
      controllerPublishVolume: async () => ({ publishContext: { device: "sda" } }),
      deleteVolume: async () => {
        throw new CsiError("FAILED_PRECONDITION", "in use");
      },
      listVolumes: async () => {
        throw new TypeError("a bug");
      },
    });
    await given(served, { log, logCalls: true, observe: (call) => calls.push(call) }).start();
    const client = createClient(Controller, dial());

    await client.controllerPublishVolume({ volumeId: "v", secrets: { k: "opensesame" } }, within);
    await client.deleteVolume({ volumeId: "v" }, within).catch(() => undefined);
    await client.listVolumes({}, within).catch(() => undefined);

    const text = JSON.stringify(lines);
    expect(text).not.toContain("opensesame");
    expect(lines.map(([message]) => message)).toEqual([
      "csi server listens",
      "csi request",
      "csi answer",
      "csi request",
      "csi call refused",
      "csi request",
      "csi handler failed",
    ]);
    expect(text).toContain("TypeError: a bug");
    expect(calls.map(({ code, unexpected }) => [code, unexpected])).toEqual([
      ["OK", false],
      ["FAILED_PRECONDITION", false],
      ["INTERNAL", true],
    ]);
  });

  test("requests past the limits are refused where limits are checked", async () => {
    let called = false;
    const served = serve(Controller, {
      deleteVolume: async () => {
        called = true;
        return {};
      },
    });
    await given(served, { checkLimits: true }).start();

    const call = createClient(Controller, dial()).deleteVolume({ volumeId: "x".repeat(129) }, within);

    await expect(call).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    expect(called).toBe(false);
  });
});

describe("bad input", () => {
  /** gRPC's prefix of a message: compressed or not, and its length. */
  const frame = (length: number, body: Buffer, compressed = 0) => {
    const head = Buffer.alloc(5);
    head.writeUInt8(compressed, 0);
    head.writeUInt32BE(length, 1);
    return Buffer.concat([head, body]);
  };

  beforeEach(async () => {
    const served = serve(Controller, { deleteVolume: async () => ({}) });
    await given([...identity, ...served]).start();
  });
  afterEach(async () => {
    // Whatever was sent, the next caller is served.
    expect((await probe()).ready).toBe(true);
  });

  for (const [claim, body, status] of [
    ["an empty message", frame(0, Buffer.alloc(0)), "0"],
    ["a message that says it is 5 MiB", frame(5 << 20, Buffer.alloc(16)), "8"],
    ["a message that says it is 4 GiB", frame(0xffffffff, Buffer.alloc(16)), "8"],
    ["a message of garbage", frame(3, Buffer.from([0xff, 0xff, 0xff])), "3"],
    ["a message cut short", frame(100, Buffer.from("abc")), "12"],
    ["no message at all", Buffer.alloc(0), "12"],
    ["two messages", Buffer.concat([frame(0, Buffer.alloc(0)), frame(0, Buffer.alloc(0))]), "12"],
    ["a compressed one that nobody announced", frame(3, Buffer.from("abc"), 1), "3"],
  ] as const) {
    test(`${claim} is answered with ${status}`, async () => {
      expect(await post("/csi.v1.Controller/DeleteVolume", body)).toBe(status);
    });
  }

  test("a real request of 5 MiB is RESOURCE_EXHAUSTED, not the end of the connection", async () => {
    const channel = createGrpcChannel({ clock }, { socketPath, sendBytesMax: 16 << 20 });
    channels.push(channel);

    const call = createClient(Controller, channel).deleteVolume({ volumeId: "x".repeat(5 << 20) }, within);

    await expect(call).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect((await createClient(Identity, channel).probe({}, within)).ready).toBe(true);
  });

  for (const [claim, bytes] of [
    ["bytes that are no HTTP/2", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["noise", Buffer.from("ff00ff00".repeat(100), "hex")],
    [
      "a preface and then noise",
      Buffer.from(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${"\xff".repeat(64)}`, "latin1"),
    ],
  ] as const) {
    test(`${claim} end that connection and nothing else`, async () => {
      const socket = connect(socketPath);
      socket.end(bytes);

      await closed(socket);
    });
  }

  test("a connection that is reset in the middle of a request harms nobody", async () => {
    const socket = connect(socketPath);
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    socket.destroy();

    await closed(socket);
  });

  test("the authorities that Go clients send are all served", async () => {
    for (const authority of ["localhost", encodeURIComponent(socketPath)]) {
      const body = frame(0, Buffer.alloc(0));

      expect(await post("/csi.v1.Identity/Probe", body, authority)).toBe("0");
    }
  });

  async function post(path: string, body: Buffer, authority = "localhost"): Promise<string> {
    const session = connectHttp2("http://localhost", { createConnection: () => connect(socketPath) });
    try {
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        ":authority": authority,
        "content-type": "application/grpc",
        te: "trailers",
      });
      return await new Promise<string>((resolve, reject) => {
        const look = (headers: Record<string, unknown>) => {
          if (headers["grpc-status"] !== undefined) resolve(headers["grpc-status"] as string);
        };
        stream.on("response", look);
        stream.on("trailers", look);
        stream.on("error", reject);
        stream.on("close", () => reject(new Error(`closed without a status, code ${stream.rstCode}`)));
        stream.resume();
        stream.end(body);
      });
    } finally {
      session.destroy();
    }
  }
});

function closed(socket: Socket): Promise<void> {
  socket.on("error", () => undefined);
  socket.resume();
  return socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once("close", () => resolve()));
}

/** A socket file with nobody behind it: what a killed driver leaves. */
async function leaveStaleSocket(path: string): Promise<void> {
  const aside = `${path}.aside`;
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(aside, resolve));
  renameSync(aside, path);
  await new Promise((resolve) => server.close(resolve));
  rmSync(aside, { force: true });
}
