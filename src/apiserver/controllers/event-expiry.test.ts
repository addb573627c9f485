import { describe, expect, test } from "vitest";
import { EVENTS, givenEngine, MERGE } from "./stage.testing.ts";

const MINUTE_MS = 60_000;

function event(name: string, fields: object = {}): object {
  return {
    metadata: { name, namespace: "t" },
    involvedObject: { kind: "Pod", namespace: "t", name: "p" },
    reason: "Because",
    type: "Normal",
    source: { component: "test" },
    ...fields,
  };
}

describe("an event", () => {
  test("goes an hour after it was written", async () => {
    const { ok, scheduler, statusOf } = await givenEngine();
    await ok("POST", EVENTS, event("e"));

    await scheduler.runFor(60 * MINUTE_MS - 1);
    expect(await statusOf(`${EVENTS}/e`)).toBe(200);

    await scheduler.runFor(1);
    expect(await statusOf(`${EVENTS}/e`)).toBe(404);
  });

  test("that is written again has another hour", async () => {
    const { ok, scheduler, statusOf } = await givenEngine();
    await ok("POST", EVENTS, event("e"));
    await scheduler.runFor(59 * MINUTE_MS);
    await ok("PATCH", `${EVENTS}/e`, { count: 2 }, MERGE);

    await scheduler.runFor(59 * MINUTE_MS);
    expect(await statusOf(`${EVENTS}/e`)).toBe(200);

    await scheduler.runFor(MINUTE_MS);
    expect(await statusOf(`${EVENTS}/e`)).toBe(404);
  });

  test("written through events.k8s.io goes as well, and reads back in both spellings until then", async () => {
    const { ok, scheduler, statusOf } = await givenEngine();
    const newEvents = "/apis/events.k8s.io/v1/namespaces/t/events";
    await ok("POST", newEvents, {
      metadata: { name: "e" },
      eventTime: "2026-01-01T00:00:00.000000Z",
      regarding: { kind: "Pod", namespace: "t", name: "p" },
      reportingController: "ex.io/c",
      reportingInstance: "c-1",
      action: "Act",
      reason: "Because",
      note: "a note",
      type: "Normal",
    });
    expect(await ok("GET", `${EVENTS}/e`)).toMatchObject({
      message: "a note",
      involvedObject: { name: "p" },
    });

    await scheduler.runFor(60 * MINUTE_MS);

    expect([await statusOf(`${EVENTS}/e`), await statusOf(`${newEvents}/e`)]).toEqual([404, 404]);
  });

  test("from before a restart has what is left of its hour, by its own times", async () => {
    const { ok, scheduler, statusOf, stop, start, clock } = await givenEngine();
    await ok("POST", EVENTS, event("old"));
    await scheduler.runFor(30 * MINUTE_MS);
    const lastTimestamp = `${clock.wall().toISOString().slice(0, 19)}Z`;
    await ok("POST", EVENTS, event("new", { lastTimestamp: "1999-01-01T00:00:00Z" }));
    await ok("PATCH", `${EVENTS}/old`, { count: 2, lastTimestamp }, MERGE);
    await ok("POST", EVENTS, event("future", { lastTimestamp: "2999-01-01T00:00:00Z" }));
    await stop();
    await scheduler.runFor(10 * MINUTE_MS);

    start();
    await scheduler.runFor(50 * MINUTE_MS - 1);
    expect([await statusOf(`${EVENTS}/old`), await statusOf(`${EVENTS}/new`)]).toEqual([200, 200]);

    await scheduler.runFor(1);
    expect([await statusOf(`${EVENTS}/old`), await statusOf(`${EVENTS}/new`)]).toEqual([404, 404]);
    await scheduler.runFor(10 * MINUTE_MS);
    expect(await statusOf(`${EVENTS}/future`)).toBe(404);
  });

  test("stopped controllers leave no alarm behind", async () => {
    const { ok, scheduler, stop, store } = await givenEngine();
    await ok("POST", EVENTS, event("e"));

    await stop();
    const { revision } = store;
    await scheduler.runFor(120 * MINUTE_MS);

    expect(store.revision).toBe(revision);
  });
});
