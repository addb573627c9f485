import { createPrivateKey, X509Certificate } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { createAuthority } from "../apiserver/certificates.ts";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import type { DataDirectory } from "./data-directory.ts";
import { ensurePki, type Pki } from "./pki.ts";

/** A stop between any two writes leaves pairs that the next start takes, signed by somebody who was trusted before. */

const DAY_MS = 24 * 3_600_000;
const PLACE = { host: "127.0.0.1", hostname: "here" };

type Files = ReadonlyMap<string, string>;

function clockOn(day: number) {
  const clock = new SimScheduler(createSeededRandom(1)).createClock();
  clock.jumpWall(day * DAY_MS);
  return clock;
}

/** A process on that day that is stopped instead of its write number `stopAt`. A write is whole or not at all. */
async function start(before: Files, day: number, stopAt = Infinity) {
  const files = new Map(before);
  let writes = 0;
  const directory: DataDirectory = {
    path: "/nowhere",
    rewrite: () => Promise.reject(new Error("no certificate is rewritten in place")),
    read: async (name) => files.get(name),
    write: async (name, text) => {
      if (writes++ === stopAt) throw new Error("stopped");
      files.set(name, text);
    },
  };
  const pki = await ensurePki({ clock: clockOn(day), directory }, PLACE).catch((error: unknown) => {
    if (stopAt === Infinity) throw error;
    return undefined;
  });
  return { files, pki };
}

/** The data directory of a server that was started on each of these days. */
async function afterDays(...days: number[]): Promise<Files> {
  let files: Files = new Map();
  for (const day of days) files = (await start(files, day)).files;
  return files;
}

/** As versions before kept them: each file holds what its name says. */
async function keptApart(): Promise<Files> {
  const clock = clockOn(0);
  const ca = await createAuthority({ clock }, { commonName: "mooring-ca", validForMs: 3_650 * DAY_MS });
  const admin = await ca.issueClient({ user: "admin", groups: [], validForMs: DAY_MS });
  return new Map([
    ["pki/ca.crt", ca.certificate],
    ["pki/ca.key", ca.key],
    ["pki/admin.crt", admin.certificate],
    ["pki/admin.key", admin.key],
  ]);
}

function isSignedByOneOf(bundle: string, { certificate }: { certificate: string }): boolean {
  const authorities = bundle.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? [];
  const leaf = new X509Certificate(certificate);
  return authorities.some((pem) => leaf.verify(new X509Certificate(pem).publicKey));
}

function expectSound(files: Files, { server, admin, authorities, ca }: Pki): void {
  for (const { certificate, key } of [server, admin, ...authorities.slice(0, 1)]) {
    expect(new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key ?? ""))).toBe(true);
  }
  expect(files.get("pki/ca.crt")).toBe(ca);
  expect(files.get("pki/apiserver.crt")).toBe(server.certificate);
  expect(files.get("pki/admin.crt")).toBe(admin.certificate);
}

describe("a server that is stopped while it writes its certificates", () => {
  for (const [what, day, before, writes] of [
    ["the first ones", 0, () => afterDays(), 6],
    ["new leaves", 340, () => afterDays(0), 4],
    ["new leaves beside files that were kept apart", 340, () => keptApart(), 4],
    ["a successor of its authority", 3_256, () => afterDays(0, 3_254), 2],
    ["a successor, beside files that were kept apart", 3_256, () => keptApart(), 6],
    ["what the successor signs", 3_621, () => afterDays(0, 3_256), 6],
    ["that the old authority is gone", 3_651, () => afterDays(0, 3_256, 3_621), 2],
    ["all of it, after ten years in which it was off", 4_000, () => afterDays(0), 6],
  ] as const) {
    describe(what, () => {
      let files: Files;
      beforeAll(async () => {
        files = await before();
      });

      test(`takes ${writes} writes`, async () => {
        expect((await start(files, day, writes - 1)).pki).toBeUndefined();
        expect((await start(files, day, writes)).pki).toBeDefined();
      });

      test.each(Array.from({ length: writes }, (_, stopAt) => stopAt))(
        "starts again after a stop before write %i",
        async (stopAt) => {
          const stopped = await start(files, day, stopAt);
          const again = await start(stopped.files, day);
          const third = await start(again.files, day);

          if (again.pki === undefined) throw new Error("it did not start");
          expectSound(again.files, again.pki);
          expect(third).toEqual({ files: again.files, pki: { ...again.pki, made: [] } });
          // Whoever trusted what was published before the stop knows the server after it.
          const bundle = files.get("pki/ca.crt");
          if (bundle !== undefined && day < 4_000) {
            expect(isSignedByOneOf(bundle, again.pki.server)).toBe(true);
          }
        },
      );
    });
  }

  test("and was stopped by a version that kept the two apart replaces leaves that do not belong together", async () => {
    const files = new Map(await keptApart());
    const other = await keptApart();
    files.set("pki/admin.key", other.get("pki/admin.key") ?? "");

    const { pki } = await start(files, 0);

    expect(pki?.made).toEqual(["apiserver", "admin"]);
  });
});

test("a certificate of the authority's owner, with more that clients should trust, is kept as it is", async () => {
  const files = new Map(await keptApart());
  const other = (await keptApart()).get("pki/ca.crt") ?? "";
  const [certificate, key] = [files.get("pki/ca.crt") ?? "", files.get("pki/ca.key")];
  files.set("pki/ca.crt", `# ours\n${certificate}${other}`);

  const { pki, files: after } = await start(files, 1);

  expect(pki?.ca).toBe(certificate + other);
  expect(after.get("pki/ca.crt")).toBe(`# ours\n${certificate}${other}`);
  expect(after.get("pki/ca.key")).toBe(key);
});
