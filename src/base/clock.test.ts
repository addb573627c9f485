import { describe, expect, test } from "vitest";
import { createSystemClock } from "./system-clock.ts";
import { abortable, withDeadline, type Clock } from "./clock.ts";
import { createSeededRandom } from "./seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";

/** The same promises for the operating system's clock and the simulated one; `pass` lets time go by. */
function clockContract(name: string, create: () => { clock: Clock; pass: (ms: number) => Promise<void> }) {
  describe(`${name} clock`, () => {
    test("timers fire in the order they are due, not the order they were set", async () => {
      const { clock, pass } = create();
      const fired: string[] = [];
      clock.after(30, () => fired.push("third"));
      clock.after(10, () => fired.push("first"));
      clock.after(20, () => fired.push("second"));

      await pass(60);

      expect(fired).toEqual(["first", "second", "third"]);
    });

    test("a cancelled timer does not fire; cancelling twice or late is harmless", async () => {
      const { clock, pass } = create();
      const fired: string[] = [];
      const cancelled = clock.after(10, () => fired.push("cancelled"));
      const kept = clock.after(10, () => fired.push("kept"));
      cancelled.cancel();
      cancelled.cancel();

      await pass(40);
      kept.cancel();

      expect(fired).toEqual(["kept"]);
    });

    test("sleep never ends early", async () => {
      const { clock, pass } = create();
      const startedAtMs = clock.now();
      let wokenAtMs = 0;
      void clock.sleep(15).then(() => (wokenAtMs = clock.now()));

      await pass(60);

      expect(wokenAtMs - startedAtMs).toBeGreaterThanOrEqual(15);
    });

    test("an aborted sleep rejects at once with the signal's reason", async () => {
      const { clock } = create();
      const controller = new AbortController();
      const asleep = clock.sleep(1_000_000, controller.signal);
      const reason = new Error("shutting down");

      controller.abort(reason);

      await expect(asleep).rejects.toBe(reason);
      await expect(clock.sleep(1, controller.signal)).rejects.toBe(reason);
    });

    test("a deadline aborts the work with its own reason, and leaves no timer when the work is quick", async () => {
      const { clock, pass } = create();
      const late = new Error("too late");
      const slow = withDeadline(clock, { ms: 10, onDeadline: () => late }, (signal) =>
        clock.sleep(1_000, signal),
      );
      const rejection = expect(slow).rejects.toBe(late);
      await pass(40);
      await rejection;

      const quick = await withDeadline(clock, { ms: 10, onDeadline: () => late }, async () => "done");

      expect(quick).toBe("done");
    });
  });
}

clockContract("system", () => {
  const clock = createSystemClock();
  return { clock, pass: (ms) => clock.sleep(ms) };
});
clockContract("simulated", () => {
  const scheduler = new SimScheduler(createSeededRandom(1));
  return { clock: scheduler.createClock(), pass: (ms) => scheduler.runFor(ms) };
});

test("a wait longer than the 24.8 days that setTimeout can hold does not fire at once", async () => {
  const clock = createSystemClock();
  let fired = false;
  const timer = clock.after(2 ** 32, () => (fired = true));

  await clock.sleep(20);
  timer.cancel();

  expect(fired).toBe(false);
});

test("waiting ends with the signal's reason, and leaves no listener behind when it ends well", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");

  expect(await abortable(Promise.resolve(1), controller.signal)).toBe(1);
  const waiting = abortable(new Promise(() => {}), controller.signal);
  controller.abort(reason);

  await expect(waiting).rejects.toBe(reason);
  await expect(abortable(Promise.resolve(1), controller.signal)).rejects.toBe(reason);
});
