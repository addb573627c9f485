import { expect, test } from "vitest";
import { toText } from "./text-log.ts";

test("a line for people has the time, the level and the message first, then every field", () => {
  const line =
    '{"level":"warn","time":"2026-11-15T20:00:00.000Z","driver":"d","waited":3,"why":{"a":"b c"},"message":"it waits"}\n';

  expect(toText(line)).toBe('2026-11-15T20:00:00.000Z WARN it waits driver="d" waited=3 why={"a":"b c"}');
});
