import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import { chance, type Random } from "../../base/random.ts";
import { SimScheduler, type SimClock } from "../../sim/scheduler.ts";
import { forSeeds } from "../../sim/seeds.ts";
import type { Credential } from "../transport/access.ts";
import { isKubeError, KubeError } from "../errors.ts";
import { createExecCredentials, type ExecAnswer } from "./exec-credentials.ts";

/** A login service: it issues tokens of some life, revokes all of them now and then, and has outages. */
class LoginService {
  readonly #clock: SimClock;
  readonly #random: Random;
  readonly #goodUntilMs = new Map<string, number>();
  #running = 0;
  runningMax = 0;
  runs = 0;
  down = false;

  constructor(clock: SimClock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  async run(): Promise<ExecAnswer> {
    this.runningMax = Math.max(this.runningMax, ++this.#running);
    this.runs++;
    await this.#clock.sleep(this.#random.int(3_000));
    this.#running--;
    if (this.down) throw new KubeError("BadConfig", "login service is down");
    const authorization = `Bearer ${this.runs}`;
    const lifeMs = 60_000 + this.#random.int(600_000);
    this.#goodUntilMs.set(authorization, this.#clock.now() + lifeMs);
    // A fifth of the answers do not say how long they live.
    const expiresAtMs = chance(this.#random, 0.8) ? this.#clock.wall().getTime() + lifeMs : undefined;
    return { credential: { authorization }, expiresAtMs };
  }

  accepts({ authorization = "" }: Credential): boolean {
    return this.#clock.now() < (this.#goodUntilMs.get(authorization) ?? 0);
  }

  revokeAll(): void {
    this.#goodUntilMs.clear();
  }
}

test("requests get through whenever the login service works, and a broken one is left in peace", async () => {
  await forSeeds(60, async (random) => {
    const scheduler = new SimScheduler(random.fork("order"));
    const clock = scheduler.createClock();
    const service = new LoginService(clock, random.fork("service"));
    const credentials = createExecCredentials(
      { clock, log: silentLogger },
      { name: "login", run: () => service.run() },
    );
    const outcomes: { atMs: number; ok: boolean }[] = [];
    const strange: unknown[] = [];
    let calmFromMs = Infinity;

    // As the transport does it: ask, send, and once more after a 401.
    async function request(): Promise<boolean> {
      for (let attempt = 0; attempt < 2; attempt++) {
        const credential = await credentials.current();
        await clock.sleep(random.int(200));
        if (service.accepts(credential)) return true;
        if (!credentials.rejected(credential)) return false;
      }
      return false;
    }
    async function client(): Promise<void> {
      while (clock.now() < calmFromMs + 900_000) {
        const ok = await request().catch((error: unknown) => {
          if (!isKubeError(error, "BadConfig")) strange.push(error);
          return false;
        });
        outcomes.push({ atMs: clock.now(), ok });
        await clock.sleep(random.int(4_000));
      }
    }
    async function trouble(): Promise<void> {
      while (clock.now() < 3_000_000) {
        await clock.sleep(random.int(600_000));
        if (chance(random, 0.5)) service.revokeAll();
        else service.down = !service.down;
      }
      service.down = false;
      calmFromMs = clock.now();
    }
    void Promise.all([...Array.from({ length: 5 }, client), trouble()]);

    await scheduler.runFor(5_000_000);

    expect(strange).toEqual([]);
    expect(service.runningMax).toBe(1);
    expect(outcomes.length).toBeGreaterThan(5_000);
    // The longest backoff, a run of the plugin and a request after the last trouble, everything works again.
    const late = outcomes.filter(({ atMs }) => atMs > calmFromMs + 60_000 + 3_000 + 500);
    expect(late.length).toBeGreaterThan(500);
    expect(late.filter(({ ok }) => !ok)).toEqual([]);
    // Some 10,000 requests, but tokens live for minutes and retries are up to a minute apart.
    expect(service.runs).toBeLessThan(200);
  });
});
