import { mkdtemp, rm } from "node:fs/promises";
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSystemClock } from "../base/system-clock.ts";
import { Controller } from "./gen/csi_pb.ts";
import { createGrpcChannel } from "./grpc-channel.ts";
import { createClient, type Channel } from "./methods.ts";

/**
 * A driver that answers with nonsense. Whatever it was, the volume may have been published: no such answer may be taken
 * for a final one, and the channel has to serve the next call.
 */

let folder: string;
let server: Http2Server;
let channel: Channel;
let answer: (stream: ServerHttp2Stream) => void;
const sessions = new Set<ServerHttp2Session>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "csi-"));
  const socketPath = join(folder, "csi.sock");
  server = createServer();
  server.on("session", (session) => sessions.add(session));
  server.on("sessionError", () => undefined);
  server.on("stream", (stream) => {
    stream.on("error", () => undefined);
    stream.resume();
    stream.on("end", () => answer(stream));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  channel = createGrpcChannel({ clock: createSystemClock() }, { socketPath });
});
afterEach(async () => {
  channel.close();
  for (const session of sessions) session.destroy();
  sessions.clear();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

function frame(length: number, body: Buffer, compressed = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(compressed, 0);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, body]);
}

const EMPTY = frame(0, Buffer.alloc(0));
const GRPC = { ":status": 200, "content-type": "application/grpc" };

const says =
  (
    body: Buffer,
    trailers: Record<string, string> | undefined = { "grpc-status": "0" },
    headers: object = GRPC,
  ) =>
  (stream: ServerHttp2Stream) => {
    stream.respond({ ...headers }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.end(body);
  };

/** A second message is not read, so that only the deadline ends the call it belongs to. */
const SOON = { timeoutMs: 1_000 };

const publish = (within = { timeoutMs: 10_000 }) =>
  createClient(Controller, channel).controllerPublishVolume(
    { volumeId: "v", nodeId: "n", secrets: { password: "correct horse" } },
    within,
  );

describe("an answer that is none leaves everything open", () => {
  for (const [claim, bad] of [
    ["a message of garbage", says(frame(3, Buffer.from([0xff, 0xff, 0xff])))],
    ["a message cut short", says(frame(100, Buffer.from("abc")))],
    ["no message", says(Buffer.alloc(0))],
    ["two messages", says(Buffer.concat([EMPTY, EMPTY]))],
    ["a message that says it is 5 MiB", says(frame(5 << 20, Buffer.alloc(16)))],
    ["a message that says it is 4 GiB", says(frame(0xffffffff, Buffer.alloc(16)))],
    ["a compressed one that nobody announced", says(frame(3, Buffer.from("abc"), 1))],
    ["no status", says(EMPTY, {})],
    [
      "a page of a web server",
      says(Buffer.from("<html>"), {}, { ":status": 404, "content-type": "text/html" }),
    ],
    ["a proxy that is not ready", says(Buffer.alloc(0), {}, { ":status": 503 })],
    ["a stream that is cut", (stream: ServerHttp2Stream) => stream.close(2)],
    [
      "a stream that is cut in the middle",
      (stream: ServerHttp2Stream) => {
        stream.respond(GRPC);
        stream.write(frame(100, Buffer.from("abc")), () => stream.close(2));
      },
    ],
    ["a connection that is cut", (stream: ServerHttp2Stream) => stream.session?.destroy()],
  ] satisfies [string, (stream: ServerHttp2Stream) => void][]) {
    test(claim, async () => {
      answer = bad;

      await expect(publish(SOON)).rejects.toMatchObject({
        class: "uncertain",
        message: expect.not.stringContaining("horse"),
      });
      answer = says(EMPTY);
      await channel.ready({ timeoutMs: 10_000 });
      expect((await publish()).publishContext).toEqual({});
    });
  }
});

test("what it asks with: localhost as the authority, whatever the path of the socket, and its deadline", async () => {
  const asked: IncomingHttpHeaders[] = [];
  server.on("stream", (_, headers) => asked.push(headers));
  answer = says(EMPTY);

  await publish({ timeoutMs: 5_000 });

  expect(asked).toMatchObject([
    { ":authority": "localhost", ":path": "/csi.v1.Controller/ControllerPublishVolume", te: "trailers" },
  ]);
  expect(Number.parseInt(String(asked[0]?.["grpc-timeout"]))).toBeGreaterThan(4_000);
});

test("an answer of the protocol stays what it is, however long its words; a number nobody knows is UNKNOWN", async () => {
  answer = says(EMPTY, { "grpc-status": "5", "grpc-message": "no%20such%20volume" });
  await expect(publish()).rejects.toMatchObject({ code: "NOT_FOUND", detail: "no such volume" });

  answer = says(EMPTY, { "grpc-status": "11", "grpc-message": "x".repeat(8_000) });
  await expect(publish()).rejects.toMatchObject({ code: "OUT_OF_RANGE", class: "final" });

  for (const status of ["99", "fine"]) {
    answer = says(EMPTY, { "grpc-status": status });
    await expect(publish()).rejects.toMatchObject({ code: "UNKNOWN" });
  }
});
