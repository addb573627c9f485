import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { CHILDREN_MAX, createChildSlots, PATIENCE_MS, PROBERS_MAX, PROGRAMS_MAX } from "./child-slots.ts";
import { HostError } from "./host.ts";

/** Programs that end when told, or never: what a test sees of the processes. */
function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const slots = createChildSlots({ clock });
  const started: string[] = [];
  const exits = new Map<string, () => void>();
  let most = 0;

  /** `hangs`: SIGTERM ends it; `for ever`: not even SIGKILL does, and its caller hears so. */
  function run(
    about: string,
    { takes = 10, hangs = "no", long = false, signal = undefined as AbortSignal | undefined } = {},
  ) {
    return slots.program({ about, doing: `umount ${about}`, long, signal }, async (stop, onExit) => {
      started.push(about);
      most = Math.max(most, slots.taken);
      exits.set(about, onExit);
      if (hangs === "no") {
        await clock.sleep(takes);
        onExit();
        return about;
      }
      await clock.sleep(60_000, stop).catch(() => undefined);
      if (hangs !== "for ever") onExit();
      throw new HostError("TimedOut", `umount ${about} was stopped`);
    });
  }
  return { scheduler, clock, slots, run, started, exits, most: () => most };
}

describe("at most 8 processes", () => {
  test("440 programs asked for at once take turns, five at a time, in their order", async () => {
    const { run, scheduler, started, most } = given();
    const names = Array.from({ length: 440 }, (_, n) => `/v/${n}`);

    const all = Promise.all(names.map((name) => run(name)));
    await scheduler.runFor(10_000);

    expect(await all).toEqual(names);
    expect(started).toEqual(names);
    expect(most()).toBe(PROGRAMS_MAX);
  });

  test("probers have slots of their own, and a fourth has none", () => {
    const { slots } = given();

    const given3 = Array.from({ length: PROBERS_MAX }, () => slots.prober());
    expect(given3.every((one) => one !== undefined)).toBe(true);
    expect(slots.prober()).toBeUndefined();

    given3[0]?.();
    given3[0]?.();
    expect(slots.taken).toBe(PROBERS_MAX - 1);
    expect(PROBERS_MAX + PROGRAMS_MAX).toBe(CHILDREN_MAX);
  });

  test("100 dead mounts take no slot for long: the healthy go on, and the dead have two slots from then on", async () => {
    const { run, scheduler, clock, most } = given();
    const dead = Array.from({ length: 100 }, (_, n) => `/dead/${n}`);
    const failed: string[] = [];
    for (const name of dead) run(name, { hangs: "until killed" }).catch(() => failed.push(name));
    const began = clock.now();
    const healthy = Promise.all(Array.from({ length: 40 }, (_, n) => run(`/fine/${n}`))).then(
      () => clock.now() - began,
    );

    await scheduler.runFor(200_000);
    // 100 dead ones, five at a time, 5 s each; a FIFO with their whole deadline would be 20 min.
    expect(await healthy).toBeLessThanOrEqual(20 * PATIENCE_MS + 1_000);

    // The second round: all of the dead are suspects now.
    for (const name of dead) run(name, { hangs: "until killed" }).catch(() => undefined);
    const againBegan = clock.now();
    const again = Promise.all(Array.from({ length: 40 }, (_, n) => run(`/fine/${n}`))).then(
      () => clock.now() - againBegan,
    );
    await scheduler.runFor(1_000);
    expect(await again).toBeLessThanOrEqual(500);
    expect(most()).toBeLessThanOrEqual(PROGRAMS_MAX);
  });

  test("what takes long is never stopped for others, and leaves three slots to the quick", async () => {
    const { run, scheduler, clock } = given();
    const formats = ["/dev/a", "/dev/b", "/dev/c"].map((name) => run(name, { takes: 60_000, long: true }));

    const began = clock.now();
    const quick = Promise.all(Array.from({ length: 30 }, (_, n) => run(`/v/${n}`))).then(
      () => clock.now() - began,
    );
    await scheduler.runFor(130_000);

    expect(await quick).toBeLessThan(1_000);
    expect(await Promise.all(formats)).toEqual(["/dev/a", "/dev/b", "/dev/c"]);
  });

  test("five that not even SIGKILL ends: whoever waits is told so and by whom, until the kernel lets go of one", async () => {
    const { run, scheduler, exits, slots } = given();
    for (let n = 0; n < PROGRAMS_MAX; n++) run(`/gone/${n}`, { hangs: "for ever" }).catch(() => undefined);
    const waits = run("/v").then(
      () => "ran",
      (error: unknown) => (error as Error).message,
    );
    await scheduler.runFor(61_000);

    expect(await waits).toContain("not started, as 5 programs hang in the kernel (umount /gone/0, ");
    expect(slots.taken).toBe(PROGRAMS_MAX);

    exits.get("/gone/3")?.();
    const served = run("/v");
    await scheduler.runFor(20);
    expect(await served).toBe("/v");
  });

  test("whoever is called off while he waits leaves the line without having run", async () => {
    const { run, scheduler, started } = given();
    const before = Array.from({ length: PROGRAMS_MAX }, (_, n) => run(`/v/${n}`));
    const caller = new AbortController();
    const waits = run("/late", { signal: caller.signal });

    caller.abort(new Error("the pod is gone"));

    await expect(waits).rejects.toThrow("called off before it was started");
    await scheduler.runFor(100);
    await Promise.all(before);
    expect(started).not.toContain("/late");
  });
});
