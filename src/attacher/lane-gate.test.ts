import { setMaxListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { LaneGate, type Permit } from "./lane-gate.ts";
import type { Operation } from "./plan.ts";

const signal = new AbortController().signal;
setMaxListeners(0, signal);

/** Asks for a place so often; answers those that were given at once. */
async function ask(gate: LaneGate, operation: Operation, times: number): Promise<Permit[]> {
  const given: Permit[] = [];
  for (let n = 0; n < times; n++) void gate.acquire(operation, signal).then((permit) => given.push(permit));
  await new Promise((resolve) => queueMicrotask(() => queueMicrotask(() => resolve(undefined))));
  return given;
}

describe("ten workers", () => {
  test("are shared in halves at first, however many detaches wait", async () => {
    const gate = new LaneGate(10);

    const detaches = await ask(gate, "detach", 1_000);
    const attaches = await ask(gate, "attach", 1_000);

    expect([detaches.length, attaches.length]).toEqual([5, 5]);
  });

  test("go to the lane that is answered, all but two", async () => {
    const gate = new LaneGate(10);
    for (let n = 0; n < 100; n++) (await gate.acquire("attach", signal)).done("answered");

    expect((await ask(gate, "attach", 20)).length).toBe(8);
    expect((await ask(gate, "detach", 20)).length).toBe(2);
  });

  test("leave a lane without answers, all but two, and come back with the answers", async () => {
    const gate = new LaneGate(10);
    for (const permit of await ask(gate, "detach", 5)) permit.done("overloaded");
    expect(gate.limit("detach")).toBe(2);

    for (let n = 0; n < 100; n++) (await gate.acquire("detach", signal)).done("answered");
    expect(gate.limit("detach")).toBe(8);
  });
});

test("one worker is shared in turns", async () => {
  const gate = new LaneGate(1);
  const order: Operation[] = [];
  const first = await gate.acquire("detach", signal);
  const turns = (["detach", "detach", "attach", "attach"] as const).map(async (operation) => {
    const permit = await gate.acquire(operation, signal);
    order.push(operation);
    permit.done("answered");
  });
  first.done("answered");
  await Promise.all(turns);

  expect(order).toEqual(["attach", "detach", "attach", "detach"]);
});

test("who is stopped while waiting leaves the line", async () => {
  const gate = new LaneGate(1);
  const stop = new AbortController();
  const first = await gate.acquire("attach", signal);
  const waiting = gate.acquire("attach", stop.signal);
  stop.abort(new Error("stopped"));

  await expect(waiting).rejects.toThrow("stopped");
  first.done("answered");
  expect(gate.running("attach")).toBe(0);
});
