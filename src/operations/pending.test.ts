import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keysConflict, type OperationKey } from "./key.ts";
import { PendingOperations } from "./pending.ts";

const ATTACH = "volume_attach";
const DETACH = "volume_detach";
const VERIFY = "verify_volumes_are_attached_per_node";

const V: OperationKey = { volume: "V" };
const V_A: OperationKey = { volume: "V", node: "a" };
const V_B: OperationKey = { volume: "V", node: "b" };

/** Starts and fails it `times` in a row, each as soon as it is let in; answers when it may be tried again. */
function failing(
  pending: PendingOperations,
  key: OperationKey,
  { name, times, atMs = 0 }: { name: string; times: number; atMs?: number },
): number {
  let nowMs = atMs;
  for (let failure = 1; failure <= times; failure++) {
    expect(pending.start(key, name, nowMs).kind).toBe("started");
    nowMs = pending.fail(key, name, `failure ${failure}`, nowMs).retryAtMs;
  }
  return nowMs;
}

describe("one in flight", () => {
  test("scenario 118: the same key is refused while it runs and let in at once after success", () => {
    const pending = new PendingOperations();

    expect(pending.start(V, ATTACH, 0)).toEqual({ kind: "started" });
    expect(pending.start(V, ATTACH, 1)).toEqual({ kind: "running", key: V, name: ATTACH });

    pending.finish(V, ATTACH);
    expect(pending.start(V, ATTACH, 1)).toEqual({ kind: "started" });
  });

  test("the rule spans names: no detach while an attach runs, and the refusal names it", () => {
    const pending = new PendingOperations();
    pending.start(V, ATTACH, 0);

    expect(pending.start(V, DETACH, 0)).toEqual({ kind: "running", key: V, name: ATTACH });
    expect(pending.running(V_A)).toEqual({ key: V, name: ATTACH });
    expect(pending.running({ volume: "W" })).toBeUndefined();
  });

  test("nodes of a shared volume run side by side, the whole volume waits for each of them", () => {
    const pending = new PendingOperations();
    pending.start(V_A, ATTACH, 0);

    expect(pending.start(V_B, ATTACH, 0).kind).toBe("started");
    pending.finish(V_A, ATTACH);
    expect(pending.start(V, DETACH, 0)).toEqual({ kind: "running", key: V_B, name: ATTACH });

    pending.finish(V_B, ATTACH);
    expect(pending.start(V, DETACH, 0).kind).toBe("started");
  });

  test("scenario 121: a verification needs no volume, runs as often as asked and leaves nothing behind", () => {
    const pending = new PendingOperations();
    const verify: OperationKey = { volume: "", node: "a" };

    expect(pending.start(verify, VERIFY, 0).kind).toBe("started");
    expect(pending.start(verify, VERIFY, 0).kind).toBe("started");
    pending.finish(verify, VERIFY);
    expect(pending.fail(verify, VERIFY, "no answer", 0)).toEqual({ retryAtMs: 501 });

    expect(pending.start(verify, VERIFY, 0).kind).toBe("started");
    expect(pending.volumeCount).toBe(0);
  });

  test("one that is called off gives the key free; it was neither a success nor a failure", () => {
    const pending = new PendingOperations();
    const nowMs = failing(pending, V, { name: ATTACH, times: 2 });
    pending.start(V, DETACH, nowMs - 1);

    pending.abandon(V, DETACH);

    expect(pending.running(V)).toBeUndefined();
    expect(pending.backoffOf(V, DETACH, nowMs - 1)).toBeUndefined();
    expect(pending.backoffOf(V, ATTACH, nowMs - 1)).toMatchObject({ failures: 2 });
  });

  test("ending what does not run is a broken invariant", () => {
    const pending = new PendingOperations();
    pending.start(V, ATTACH, 0);

    expect(() => pending.finish(V, DETACH)).toThrow(/volume_detach of .* ended but .*volume_attach/);
    expect(() => pending.fail({ volume: "W" }, ATTACH, "x", 0)).toThrow(/ended but/);
  });
});

describe("back-off", () => {
  test("0.5 1 2 4 8 16 32 64 122 122 s, each let in only when more than that has passed", () => {
    const pending = new PendingOperations();
    let nowMs = 0;

    for (const seconds of [0.5, 1, 2, 4, 8, 16, 32, 64, 122, 122]) {
      expect(pending.start(V, ATTACH, nowMs).kind).toBe("started");
      const { retryAtMs } = pending.fail(V, ATTACH, "no", nowMs);
      const endMs = nowMs + seconds * 1_000;

      expect(pending.start(V, ATTACH, endMs)).toEqual({
        kind: "backoff",
        untilMs: endMs + 1,
        lastError: "no",
      });
      expect(retryAtMs).toBe(endMs + 1);
      nowMs = retryAtMs;
    }
  });

  test("a clock with fractions: the time given for the retry is never too early", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), (nowMs) => {
        const pending = new PendingOperations();
        pending.start(V, ATTACH, nowMs);

        const { retryAtMs } = pending.fail(V, ATTACH, "no", nowMs);

        return pending.start(V, ATTACH, retryAtMs).kind === "started" && retryAtMs - nowMs <= 501;
      }),
    );
  });

  test("success clears it: the next failure is the first again", () => {
    const pending = new PendingOperations();
    const nowMs = failing(pending, V, { name: ATTACH, times: 5 });

    pending.start(V, ATTACH, nowMs);
    pending.finish(V, ATTACH);

    expect(failing(pending, V, { name: ATTACH, times: 1, atMs: nowMs })).toBe(nowMs + 501);
  });

  test("scenario 119, first half: the same name is refused, another is let in at once", () => {
    const pending = new PendingOperations();
    failing(pending, V, { name: ATTACH, times: 1 });

    expect(pending.start(V, ATTACH, 100)).toEqual({ kind: "backoff", untilMs: 501, lastError: "failure 1" });
    expect(pending.start(V, DETACH, 100).kind).toBe("started");
  });

  // The original lets the other name take over the entry and resets its back-off, so that an attach and a detach
  // that fail in turns run as fast as they can (weakness W-17). Here each name keeps its own failures.
  test("scenario 119, second half, where we differ: the other name resets nothing", () => {
    const pending = new PendingOperations();
    failing(pending, V, { name: ATTACH, times: 3 });
    const before = pending.backoffOf(V, ATTACH, 1_600);

    failing(pending, V, { name: DETACH, times: 1, atMs: 1_600 });

    expect(before).toMatchObject({ failures: 3, lastError: "failure 3" });
    expect(pending.backoffOf(V, ATTACH, 1_600)).toEqual(before);
    expect(pending.backoffOf(V, DETACH, 1_600)).toMatchObject({ failures: 1, untilMs: 2_101 });
  });

  test("attach and detach that fail in turns slow down: 12 tries each in 10 minutes, not thousands", () => {
    const pending = new PendingOperations();
    let tries = 0;

    for (let nowMs = 0; nowMs < 600_000; nowMs += 100) {
      for (const name of [ATTACH, DETACH]) {
        if (pending.start(V, name, nowMs).kind !== "started") continue;
        tries++;
        pending.fail(V, name, "no", nowMs);
      }
    }

    expect(tries).toBe(2 * 12);
  });

  test("a detach that worked frees the attach that failed before: it may go to another node now", () => {
    const pending = new PendingOperations();
    const nowMs = failing(pending, V, { name: ATTACH, times: 9 }) - 100_000;
    expect(pending.start(V, ATTACH, nowMs).kind).toBe("backoff");

    pending.start(V, DETACH, nowMs);
    pending.finish(V, DETACH);

    expect(pending.start(V, ATTACH, nowMs).kind).toBe("started");
  });

  test("the other way round: after an attach that worked the next detach starts afresh", () => {
    const pending = new PendingOperations();
    const nowMs = failing(pending, V_A, { name: DETACH, times: 6 }) - 1_000;

    pending.start(V_A, ATTACH, nowMs);
    pending.finish(V_A, ATTACH);

    expect(pending.backoffOf(V_A, DETACH, nowMs)).toBeUndefined();
  });

  test("a node of a shared volume that fails delays no other node (scenario 41)", () => {
    const pending = new PendingOperations();
    failing(pending, V_A, { name: ATTACH, times: 4 });

    expect(pending.start(V_B, ATTACH, 0).kind).toBe("started");
    pending.finish(V_B, ATTACH);
    expect(pending.start(V_A, ATTACH, 3_600).kind).toBe("backoff");
  });

  test("a key that changes its shape takes the failures with it", () => {
    const pending = new PendingOperations();
    const nowMs = failing(pending, V_A, { name: ATTACH, times: 3 });

    expect(pending.start(V, ATTACH, nowMs - 10).kind).toBe("backoff");
    expect(failing(pending, V, { name: ATTACH, times: 1, atMs: nowMs })).toBe(nowMs + 4_001);
    expect(pending.backoffOf(V_A, ATTACH, nowMs)).toMatchObject({ failures: 4 });
  });

  test("a reset lets every name start at once, and its next failure is the first", () => {
    const pending = new PendingOperations();
    failing(pending, V, { name: ATTACH, times: 7 });
    failing(pending, V, { name: DETACH, times: 2 });

    pending.resetBackoff(V);

    expect(pending.backoffOf(V, DETACH, 0)).toBeUndefined();
    expect(failing(pending, V, { name: ATTACH, times: 1 })).toBe(501);
  });

  test("a reset does not touch what runs", () => {
    const pending = new PendingOperations();
    pending.start(V, ATTACH, 0);

    pending.resetBackoff(V);

    expect(pending.start(V, ATTACH, 0).kind).toBe("running");
  });
});

describe("bounds", () => {
  test("a success leaves nothing; a failure stays until the volume is forgotten", () => {
    const pending = new PendingOperations();
    pending.start(V, ATTACH, 0);
    pending.finish(V, ATTACH);
    expect(pending.volumeCount).toBe(0);

    failing(pending, V, { name: ATTACH, times: 1 });
    expect(pending.volumeCount).toBe(1);

    pending.forget("V");
    expect(pending.volumeCount).toBe(0);
    expect(pending.start(V, ATTACH, 0).kind).toBe("started");
  });

  test("forgotten while it runs: still alone in flight, and gone when it ends, even by failing", () => {
    const pending = new PendingOperations();
    pending.start(V, DETACH, 0);

    pending.forget("V");
    expect(pending.start(V, ATTACH, 0).kind).toBe("running");

    pending.fail(V, DETACH, "no", 0);
    expect(pending.volumeCount).toBe(0);
  });

  test("forgotten, then wanted again: its failures count again", () => {
    const pending = new PendingOperations();
    pending.start(V_A, DETACH, 0);
    pending.forget("V");

    pending.start(V_B, ATTACH, 0);
    pending.fail(V_A, DETACH, "no", 0);
    pending.finish(V_B, ATTACH);

    expect(pending.backoffOf(V_A, DETACH, 0)).toMatchObject({ failures: 1 });
  });
});

test("never do two conflicting keys run, and the answers agree with a plain list", () => {
  const part = fc.constantFrom(undefined, "a", "b", "c");
  const key = fc.record({
    volume: fc.constantFrom("", "V", "W"),
    pod: fc.constantFrom(undefined, "p", "q"),
    node: part,
  });
  const step = fc.record({
    act: fc.constantFrom("start", "start", "start", "finish", "fail", "abandon", "forget", "reset"),
    key,
    name: fc.constantFrom(ATTACH, DETACH),
    pick: fc.nat(),
    afterMs: fc.constantFrom(0, 1, 400, 1_000, 130_000),
  });

  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const pending = new PendingOperations();
      let running: { key: OperationKey; name: string }[] = [];
      let nowMs = 0;
      for (const { act, key, name, pick, afterMs } of steps) {
        nowMs += afterMs;
        const ended = running[pick % Math.max(1, running.length)];
        if (act === "start") {
          const answer = pending.start(key, name, nowMs);
          const blocked = running.some((other) => keysConflict(other.key, key));
          expect(answer.kind === "running").toBe(blocked);
          if (answer.kind === "started") running.push({ key, name });
          if (answer.kind === "backoff") expect(answer.untilMs).toBeGreaterThan(nowMs);
        } else if (act === "forget") pending.forget(key.volume);
        else if (act === "reset") pending.resetBackoff(key);
        else if (ended) {
          running = running.filter((other) => other !== ended);
          if (act === "finish") pending.finish(ended.key, ended.name);
          else if (act === "abandon") pending.abandon(ended.key, ended.name);
          else pending.fail(ended.key, ended.name, "no", nowMs);
        }
        for (const [i, one] of running.entries())
          for (const other of running.slice(i + 1)) expect(keysConflict(one.key, other.key)).toBe(false);
      }
      // Whatever happened, ending and forgetting all of it leaves nothing.
      for (const { key, name } of running) pending.fail(key, name, "no", nowMs);
      for (const volume of ["V", "W"]) pending.forget(volume);
      expect(pending.volumeCount).toBe(0);
    }),
    { numRuns: 500 },
  );
});

test("a volume on 5,000 nodes, all detached at once, costs a look at its own node only", () => {
  const pending = new PendingOperations();
  const keys = Array.from({ length: 5_000 }, (_, node) => ({ volume: "V", node: `node-${node}` }));
  let looks = 0;
  const counted = keys.map((key) => ({
    get volume() {
      looks++;
      return key.volume;
    },
    node: key.node,
  }));

  for (const key of counted) pending.start(key, DETACH, 0);
  for (const key of counted) pending.finish(key, DETACH);

  expect(looks).toBeLessThan(5_000 * 40);
  expect(pending.volumeCount).toBe(0);
});
