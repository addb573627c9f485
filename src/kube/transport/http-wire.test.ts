import { describe, expect, test } from "vitest";
import { joinHeaders, WireBody } from "./http-wire.ts";

function givenBody() {
  const flow: string[] = [];
  const body = new WireBody({
    pause: () => flow.push("pause"),
    resume: () => flow.push("resume"),
    cancel: () => flow.push("cancel"),
  });
  return { body, flow };
}

const bytes = (text: string) => Buffer.from(text);
const kib = (count: number) => Buffer.alloc(count * 1024, "x");

describe("a body read in chunks", () => {
  test("pauses its source at 64 KiB and resumes it when the reader has caught up", async () => {
    const { body, flow } = givenBody();
    const reader = body[Symbol.asyncIterator]();

    body.push(kib(32));
    expect(flow).toEqual([]);
    body.push(kib(32));
    expect(flow).toEqual(["pause"]);
    await reader.next();
    expect(flow).toEqual(["pause"]);
    await reader.next();

    expect(flow).toEqual(["pause", "resume"]);
  });

  test("gives what had arrived before it says that the connection broke", async () => {
    const { body } = givenBody();
    const reader = body[Symbol.asyncIterator]();
    const broken = new Error("broken");

    body.push(bytes("1"));
    body.fail(broken);

    expect((await reader.next()).value).toEqual(bytes("1"));
    await expect(reader.next()).rejects.toBe(broken);
    expect((await reader.next()).done).toBe(true);
  });

  test("gives nothing more once its reader aborted", async () => {
    const { body } = givenBody();
    const reader = body[Symbol.asyncIterator]();
    const reason = new Error("enough");

    body.push(bytes("1"));
    body.abort(reason);
    body.push(bytes("2"));

    await expect(reader.next()).rejects.toBe(reason);
  });

  test("tells its source once that the reader left, and not at all after the end", async () => {
    const left = givenBody();
    const ended = givenBody();

    const leaving = left.body[Symbol.asyncIterator]();
    await leaving.return?.();
    await leaving.return?.();
    ended.body.end();
    await ended.body[Symbol.asyncIterator]().return?.();

    expect(left.flow).toEqual(["cancel"]);
    expect(ended.flow).toEqual([]);
  });

  test("cannot be read twice", () => {
    const { body } = givenBody();
    body[Symbol.asyncIterator]();

    expect(() => body[Symbol.asyncIterator]()).toThrow(/read twice/);
  });
});

describe("a body read at once", () => {
  test("never pauses its source, and joins characters that were split", async () => {
    const { body, flow } = givenBody();
    const text = body.text("GET /it", 1_000_000);
    const tick = bytes("✓");

    body.push(kib(200));
    body.push(tick.subarray(0, 1));
    body.push(tick.subarray(1));
    body.end();

    expect((await text).endsWith("x✓")).toBe(true);
    expect(flow).toEqual([]);
  });

  test("one byte past the bound is too much, and the source is told before it sends the rest", async () => {
    const { body, flow } = givenBody();
    const text = body.text("GET /it", 1_024);

    body.push(kib(1));
    body.push(bytes("x"));

    await expect(text).rejects.toMatchObject({ code: "BadResponse" });
    expect(flow).toEqual(["cancel"]);
  });
});

test("headers are one line a name, without the pseudo-headers of HTTP/2", () => {
  expect(joinHeaders({ ":status": 200, "x-a": "1", "x-b": ["1", "2"], "x-c": undefined })).toEqual({
    "x-a": "1",
    "x-b": "1, 2",
  });
});
