import { describe, expect, test } from "vitest";
import { createLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { stopInTime } from "./apiserver.ts";

function given() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const happened: string[] = [];
  const log = createLogger((level) => happened.push(level));
  const deps = { clock: scheduler.createClock(), log, exit: (code: number) => happened.push(`exit ${code}`) };
  return { scheduler, happened, deps };
}

describe("a server that is asked to end", () => {
  test("ends by itself within 20 s, and nobody interferes later", async () => {
    const { scheduler, happened, deps } = given();

    const stopped = stopInTime(deps, { stop: () => deps.clock.sleep(19_999) });
    await scheduler.runFor(60_000);
    await stopped;

    expect(happened).toEqual([]);
  });

  test("that hangs, as on a disk that does not answer, is ended after 20 s with 1", async () => {
    const { scheduler, happened, deps } = given();

    void stopInTime(deps, { stop: () => new Promise(() => undefined) });
    await scheduler.runFor(19_999);
    expect(happened).toEqual([]);
    await scheduler.runFor(1);

    expect(happened).toEqual(["error", "exit 1"]);
  });
});
