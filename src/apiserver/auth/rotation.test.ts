import { beforeAll, describe, expect, test } from "vitest";
import { createLogger } from "../../base/log.ts";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { SimScheduler, type SimClock } from "../../sim/scheduler.ts";
import { createAuthority } from "../certificates.ts";
import { planRotation, runRotation, type RotatedPki } from "./rotation.ts";

const DAY_MS = 24 * 3_600_000;
const START_MS = Date.UTC(2026, 0, 1);

async function pkiFor(
  clock: SimClock,
  days: { readonly ca: number; readonly server: number; readonly admin: number },
): Promise<RotatedPki> {
  const authority = await createAuthority({ clock }, { commonName: "ca", validForMs: days.ca * DAY_MS });
  const validForMs = { server: days.server * DAY_MS, admin: days.admin * DAY_MS };
  return {
    authorities: [{ certificate: authority.certificate, key: authority.key }],
    server: await authority.issueServer({
      names: ["localhost"],
      addresses: [],
      validForMs: validForMs.server,
    }),
    admin: await authority.issueClient({ user: "admin", groups: [], validForMs: validForMs.admin }),
  };
}

const LONG = { ca: 3_650, server: 365, admin: 365 };

describe("the plan", () => {
  let pki: RotatedPki;
  beforeAll(async () => {
    pki = await pkiFor(new SimScheduler(createSeededRandom(1)).createClock(), { ...LONG, admin: 9 });
  });

  for (const [day, renew, authority] of [
    [0, []],
    [5.9, []],
    [6.1, ["admin"]], // a third of nine days is left
    [334, ["admin"]],
    [336, ["server", "admin"]], // thirty days of a year are left
    [3_254, ["server", "admin"]],
    [3_256, ["server", "admin"], "announce"], // a year and a month before the end of ten
  ] as const) {
    test(`on day ${day} renews ${renew.join(" and ") || "nothing"}${authority ? ` and has to ${authority}` : ""}`, () => {
      const plan = planRotation(pki, START_MS + day * DAY_MS);

      expect([plan.renew, plan.authority]).toEqual([renew, authority]);
    });
  }

  test("an authority that begins to sign signs everything anew, however fresh the rest is", async () => {
    const clock = new SimScheduler(createSeededRandom(1)).createClock();
    const short = await pkiFor(clock, { ...LONG, ca: 80 });
    const next = await createAuthority({ clock }, { commonName: "ca", validForMs: 3_650 * DAY_MS });
    const authorities = [...short.authorities, { certificate: next.certificate, key: next.key }];
    const both = { ...(await pkiFor(clock, LONG)), authorities };

    expect(planRotation(both, START_MS + 60 * DAY_MS)).toMatchObject({ authority: undefined, renew: [] });
    expect(planRotation(both, START_MS + 70 * DAY_MS)).toMatchObject({
      authority: "switch",
      renew: ["server", "admin"],
    });
  });

  test("names the next moment to act", () => {
    const { nextAtMs } = planRotation(pki, START_MS);

    expect(Math.abs(nextAtMs - (START_MS + 6 * DAY_MS))).toBeLessThan(5 * 60_000);
  });
});

describe("the loop", () => {
  async function givenLoop({ failures = 0 } = {}) {
    const scheduler = new SimScheduler(createSeededRandom(1));
    const clock = scheduler.createClock();
    const end = new AbortController();
    const happened: string[] = [];
    const log = createLogger((level, message) => happened.push(`${level}: ${message}`));
    const fresh = () => pkiFor(clock, { ...LONG, admin: 90, server: 90 });
    const done = runRotation(
      {
        clock,
        log,
        renew: async () => {
          happened.push(`renew on day ${Math.round(clock.now() / DAY_MS)}`);
          if (failures-- > 0) throw new Error("disk full");
          return fresh();
        },
        install: () => void happened.push("install"),
      },
      await fresh(),
      end.signal,
    );
    return { scheduler, clock, happened, stop: () => (end.abort(), done) };
  }

  /** Days one after the other: keys come from outside the simulation and take real turns of the loop. */
  async function passDays(loop: Awaited<ReturnType<typeof givenLoop>>, days: number): Promise<void> {
    for (let day = 0; day < days; day++) {
      const before = loop.happened.length;
      await loop.scheduler.runFor(DAY_MS);
      const isRenewing = () => loop.happened.slice(before).some((line) => line.startsWith("renew"));
      while (isRenewing() && !/^(info|error)/.test(loop.happened.at(-1) ?? "")) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  test("renews a third of a life before its end, again and again, and stops when told", async () => {
    const loop = await givenLoop();

    await passDays(loop, 125);
    await loop.stop();

    expect(loop.happened).toEqual([
      "renew on day 60",
      "install",
      "info: certificates renewed",
      "renew on day 120",
      "install",
      "info: certificates renewed",
    ]);
  });

  test("that fails says so and tries again within the hour", async () => {
    const loop = await givenLoop({ failures: 1 });

    await passDays(loop, 61);
    await loop.stop();

    expect(loop.happened.slice(0, 3)).toEqual([
      "renew on day 60",
      "error: certificates could not be renewed; trying again",
      "renew on day 60",
    ]);
  });

  test("notices a clock that was set forward within a day", async () => {
    const loop = await givenLoop();
    loop.clock.jumpWall(70 * DAY_MS);

    await passDays(loop, 2);
    await loop.stop();

    expect(loop.happened[0]).toMatch(/^renew on day [01]$/);
  });
});
