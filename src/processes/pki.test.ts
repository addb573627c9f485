import { X509Certificate } from "node:crypto";
import { describe, expect, test } from "vitest";
import { runRotation } from "../apiserver/auth/rotation.ts";
import { createLogger } from "../base/log.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import type { DataDirectory } from "./data-directory.ts";
import { ensurePki, type Pki } from "./pki.ts";

const DAY_MS = 24 * 3_600_000;
const PLACE = { host: "127.0.0.1", hostname: "here" };

function givenDirectory() {
  const scheduler = new SimScheduler(createSeededRandom(1));
  const clock = scheduler.createClock();
  const files = new Map<string, string>();
  const directory: DataDirectory = {
    path: "/nowhere",
    rewrite: () => Promise.reject(new Error("no certificate is rewritten in place")),
    read: async (name) => files.get(name),
    write: async (name, text) => void files.set(name, text),
  };
  return { scheduler, clock, files, ensure: () => ensurePki({ clock, directory }, PLACE) };
}

function serials({ server, admin }: Pki): string[] {
  return [server, admin].map(({ certificate }) => new X509Certificate(certificate).serialNumber);
}

describe("the certificates of a data directory", () => {
  for (const [day, made] of [
    [0, []],
    [334, []],
    [335, ["apiserver", "admin"]], // thirty days of a year are left
    [400, ["apiserver", "admin"]],
    [3_254, ["apiserver", "admin"]],
    [3_255, ["next ca", "apiserver", "admin"]], // a year and a month of ten are left
    [3_649, ["next ca", "apiserver", "admin"]],
    [3_650, ["next ca", "ca", "apiserver", "admin"]], // too late for a bundle: it has ended
  ] as const) {
    test(`of day 0, found on day ${day}: ${made.join(", ") || "all are kept"}`, async () => {
      const { scheduler, ensure } = givenDirectory();
      await ensure();

      await scheduler.runFor(day * DAY_MS);

      expect((await ensure()).made).toEqual(made);
    });
  }

  test("are renewed by a running server the moment they are due, once, on disk as in use", async () => {
    const { scheduler, clock, files, ensure } = givenDirectory();
    const first = await ensure();
    const installed: { pki: Pki; day: number }[] = [];
    const end = new AbortController();
    const log = createLogger(() => undefined);
    const install = (pki: Pki) => void installed.push({ pki, day: clock.now() / DAY_MS });
    const running = runRotation({ clock, log, renew: ensure, install }, first, end.signal);

    for (let hour = 0; hour < 337 * 24; hour++) {
      await scheduler.runFor(3_600_000);
      // Keys are made outside simulated time.
      while (hour === 335 * 24 - 1 && installed.length === 0) await scheduler.runFor(0);
    }
    end.abort();
    await running;

    expect(installed.map(({ day }) => day)).toEqual([335]);
    const renewed = installed[0]?.pki ?? first;
    const before = serials(first);
    expect(serials(renewed).some((serial) => before.includes(serial))).toBe(false);
    expect(renewed.ca).toBe(first.ca);
    expect(files.get("pki/admin.crt")).toBe(renewed.admin.certificate);
    expect(files.get("pki/apiserver.key")).toBe(renewed.server.key + renewed.server.certificate);
  });
});
