import { describe, expect, test } from "vitest";
import type { KubeEvent } from "../api/event.ts";
import { correlate, createCorrelation, cutText } from "./event-correlation.ts";

let names = 0;

function event({ message = "m", reason = "R", object = "pod", time = "T" } = {}): KubeEvent {
  return {
    metadata: { name: `${object}.${names++}`, namespace: "ns" },
    involvedObject: { kind: "Pod", namespace: "ns", name: object, uid: "u" },
    source: { component: "c", host: "h" },
    type: "Warning",
    reason,
    message,
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

describe("the same event again", () => {
  test("keeps its name and first time, and counts up", () => {
    const correlation = createCorrelation();
    const first = event({ time: "T1" });
    expect(correlate(correlation, first, 0)).toEqual({ kind: "create", event: first });

    const again = correlate(correlation, event({ time: "T2" }), 1_000);

    expect(again).toMatchObject({
      kind: "update",
      event: { metadata: first.metadata, count: 2, firstTimestamp: "T1", lastTimestamp: "T2" },
    });
  });

  for (const [title, other] of [
    ["message", { message: "other" }],
    ["reason", { reason: "Other" }],
    ["object", { object: "other" }],
  ] as const) {
    test(`but with another ${title} is another event`, () => {
      const correlation = createCorrelation();
      correlate(correlation, event(), 0);

      expect(correlate(correlation, event(other), 1).kind).toBe("create");
    });
  }
});

describe("similar events", () => {
  test("past ten messages in ten minutes are combined into one that counts up", () => {
    const correlation = createCorrelation();
    const results = Array.from({ length: 12 }, (_, index) =>
      correlate(correlation, event({ message: `m${index}` }), index * 1_000),
    );

    expect(results.slice(0, 10).every(({ kind }) => kind === "create")).toBe(true);
    expect(results[10]).toMatchObject({
      kind: "create",
      event: { message: "(combined from similar events): m10" },
    });
    expect(results[11]).toMatchObject({
      kind: "update",
      event: { message: "(combined from similar events): m11", count: 2 },
    });
  });

  test("are told apart again after ten minutes of silence", () => {
    const correlation = createCorrelation();
    for (let index = 0; index < 11; index++) correlate(correlation, event({ message: `m${index}` }), 0);

    const later = correlate(correlation, event({ message: "new" }), 600_001);

    expect(later).toMatchObject({ kind: "create", event: { message: "new" } });
  });
});

describe("too many events about one object", () => {
  test("stop after 25, go on with one each five minutes, and lose no count", () => {
    const correlation = createCorrelation();
    const kinds = Array.from({ length: 27 }, () => correlate(correlation, event(), 0).kind);
    expect(kinds.filter((kind) => kind === "rate-limited")).toHaveLength(2);

    expect(correlate(correlation, event(), 299_999).kind).toBe("rate-limited");
    expect(correlate(correlation, event(), 300_000)).toMatchObject({ kind: "update", event: { count: 29 } });
    expect(correlate(correlation, event(), 300_001).kind).toBe("rate-limited");
  });

  test("do not silence another object", () => {
    const correlation = createCorrelation();
    for (let index = 0; index < 30; index++) correlate(correlation, event(), 0);

    expect(correlate(correlation, event({ object: "other" }), 0).kind).toBe("create");
  });
});

test("what is remembered is bounded: the object not heard of for longest is forgotten", () => {
  const correlation = createCorrelation({ entriesMax: 3 });
  for (const object of ["a", "b", "a", "c", "d"]) correlate(correlation, event({ object }), 0);

  expect(correlation.written.size).toBe(3);
  expect(correlate(correlation, event({ object: "a" }), 0)).toMatchObject({
    kind: "update",
    event: { count: 3 },
  });
  expect(correlate(correlation, event({ object: "b" }), 0).kind).toBe("create");
});

describe("messages", () => {
  test("up to 1,024 bytes stay as they are", () => {
    const text = "x".repeat(1_024);

    expect(cutText(text)).toBe(text);
  });

  test("longer ones are cut between characters", () => {
    const cut = cutText("é".repeat(600));

    expect(new TextEncoder().encode(cut).length).toBeLessThanOrEqual(1_024);
    expect(cut).toMatch(/^é+\.\.\.$/);
  });
});
