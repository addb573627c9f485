import { expect, test } from "vitest";
import type { ConfigMap } from "../api/config-map.ts";
import { decodeWatch, endsInitialEvents, type WatchEvent } from "./watch.ts";

async function decode(chunks: readonly (string | Uint8Array)[]): Promise<WatchEvent<ConfigMap>[]> {
  async function* body() {
    for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
  }
  const events: WatchEvent<ConfigMap>[] = [];
  for await (const batch of decodeWatch<ConfigMap>(body())) events.push(...batch);
  return events;
}

const line = (name: string) => `${JSON.stringify({ type: "ADDED", object: { metadata: { name } } })}\n`;

test("events are the same wherever the chunks are cut, also within a character", async () => {
  const bytes = Buffer.from(line("a") + line("schlüssel-€-𝄞") + line("c"));
  for (let at = 0; at <= bytes.length; at++) {
    const events = await decode([bytes.subarray(0, at), bytes.subarray(at)]);

    expect(events.map(({ object }) => object.metadata.name)).toEqual(["a", "schlüssel-€-𝄞", "c"]);
  }
});

test("one byte a chunk, and blank lines between events", async () => {
  const bytes = Buffer.from(`\n${line("a")}\n\n${line("b")}`);

  const events = await decode([...bytes].map((byte) => Uint8Array.of(byte)));

  expect(events.map(({ object }) => object.metadata.name)).toEqual(["a", "b"]);
});

test("a half line at the end is dropped: the event comes again after the resume", async () => {
  expect(await decode([line("a"), line("b").slice(0, 20)])).toHaveLength(1);
});

for (const [what, text] of [
  ["no JSON", '{"type":"ADDED","obj\n'],
  ["no event", '{"hello":"world"}\n'],
  ["an unknown type", '{"type":"RENAMED","object":{"metadata":{}}}\n'],
  ["no object", '{"type":"ADDED","object":null}\n'],
  ["no metadata", '{"type":"ADDED","object":{}}\n'],
  ["null", "null\n"],
] as const) {
  test(`a line with ${what} is a bad response that does not repeat the line`, async () => {
    await expect(decode([line("a"), text])).rejects.toMatchObject({ code: "BadResponse" });
    await expect(decode([text])).rejects.not.toThrow(/hello/);
  });
}

test("a line without end is cut off at 16 MiB instead of filling the memory", async () => {
  const chunk = Buffer.alloc(1 << 20, "x");

  await expect(decode(Array.from({ length: 20 }, () => chunk))).rejects.toMatchObject({
    code: "BadResponse",
  });
});

test("only the marked bookmark ends the initial events", () => {
  const bookmark = (annotations?: Record<string, string>): WatchEvent<ConfigMap> => ({
    type: "BOOKMARK",
    object: { metadata: { resourceVersion: "5", ...(annotations ? { annotations } : {}) } },
  });

  expect(endsInitialEvents(bookmark({ "k8s.io/initial-events-end": "true" }))).toBe(true);
  expect(endsInitialEvents(bookmark())).toBe(false);
});
