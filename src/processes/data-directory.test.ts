import { createHash } from "node:crypto";
import { chmod, link, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSeededRandom } from "../base/seeded-random.ts";
import { SimScheduler } from "../sim/scheduler.ts";
import { openDataDirectory } from "./data-directory.ts";
import { lockDirectory } from "./lock.ts";
import { ensurePki } from "./pki.ts";

let place: string;
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), "mooring-data-"));
});
afterEach(async () => {
  await rm(place, { recursive: true, force: true });
});

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o777).toString(8);
}

describe("data directory", () => {
  test("it is made for its owner alone, and so is every file in it", async () => {
    const directory = await openDataDirectory(join(place, "deep", "data"));

    await directory.write("pki/x.key", "secret");

    expect(await modeOf(directory.path)).toBe("700");
    expect(await modeOf(join(directory.path, "pki"))).toBe("700");
    expect(await modeOf(join(directory.path, "pki/x.key"))).toBe("600");
  });

  test("a directory that is there already keeps its mode", async () => {
    await chmod(place, 0o755);

    await openDataDirectory(place);

    expect(await modeOf(place)).toBe("755");
  });

  test("writing again replaces the file and leaves no drafts", async () => {
    const directory = await openDataDirectory(place);

    await directory.write("a", "1");
    await directory.write("a", "2");

    expect(await directory.read("a")).toBe("2");
    expect(await readdir(place)).toEqual(["a", "pki"]);
  });

  test("a file in its place is explained, with the flag to use", async () => {
    await writeFile(join(place, "taken"), "");

    await expect(openDataDirectory(join(place, "taken"))).rejects.toMatchObject({
      code: "BadDataDir",
      explanation: expect.stringMatching(/a file is in the way.*--data-dir/) as string,
    });
  });
});

describe("lock", () => {
  test("the second to come is refused and told who holds it; after release it gets in", async () => {
    const first = await lockDirectory(place);

    await expect(lockDirectory(place)).rejects.toMatchObject({
      code: "DataDirInUse",
      explanation: expect.stringContaining(`process ${process.pid}`) as string,
    });
    await first.release();

    await (await lockDirectory(place)).release();
    expect(await readdir(place)).toEqual([]);
  });

  for (const [what, text] of [
    // Above every pid limit, so nobody's.
    ["a process that is gone", JSON.stringify({ pid: 2 ** 30, started: "1" })],
    [
      "a process from before a reboot, whose pid is another's now",
      JSON.stringify({ pid: process.pid, started: "1" }),
    ],
    ["nobody: it was cut short", '{"pi'],
    ["nobody: it is empty", ""],
  ] as const) {
    test(`a lock of ${what} is taken over`, async () => {
      await writeFile(join(place, "mooring.lock"), text);

      const lock = await lockDirectory(place);

      expect(JSON.parse(await readFile(join(place, "mooring.lock"), "utf8"))).toMatchObject({
        pid: process.pid,
      });
      await lock.release();
    });
  }

  test("what a killed process of our own number left, claim and lock in one file, is taken over", async () => {
    // As in a container, where the server has the same number after every restart.
    await writeFile(
      join(place, `mooring.lock.${process.pid}`),
      JSON.stringify({ pid: 2 ** 30, started: "1" }),
    );
    await link(join(place, `mooring.lock.${process.pid}`), join(place, "mooring.lock"));

    await (await lockDirectory(place)).release();

    expect(await readdir(place)).toEqual([]);
  });

  test("one that was killed while it removed a stale lock does not stop the next", async () => {
    const stale = JSON.stringify({ pid: 2 ** 30, started: "1" });
    const guard = `mooring.lock.${createHash("sha256").update(stale).digest("hex").slice(0, 12)}.0`;
    for (const name of ["mooring.lock", guard]) await writeFile(join(place, name), stale);

    await (await lockDirectory(place)).release();

    expect(await readdir(place)).toEqual([]);
  });

  test("of three that find the same stale lock, one gets it, every time", async () => {
    for (let round = 0; round < 50; round++) {
      await writeFile(join(place, "mooring.lock"), JSON.stringify({ pid: 2 ** 30, started: "1" }));

      // Each under a pid of its own that is alive: this process, its parent, init.
      const claims = await Promise.allSettled(
        [process.pid, process.ppid, 1].map((pid) => lockDirectory(place, { me: pid })),
      );

      expect(claims.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      await rm(join(place, "mooring.lock"));
    }
  });
});

describe("certificates", () => {
  async function given() {
    const scheduler = new SimScheduler(createSeededRandom(1));
    const clock = scheduler.createClock();
    const directory = await openDataDirectory(place);
    const ensure = (host = "127.0.0.1") => ensurePki({ clock, directory }, { host, hostname: "box" });
    return { clock, directory, ensure };
  }
  const DAY_MS = 24 * 3_600_000;

  test("made once, then kept", async () => {
    const { ensure } = await given();

    const first = await ensure();
    const second = await ensure();

    expect(first.made).toEqual(["ca", "apiserver", "admin"]);
    expect(second).toEqual({ ...first, made: [] });
  });

  test("near their end they are made anew, from the same authority", async () => {
    const { ensure, clock } = await given();
    const first = await ensure();
    clock.jumpWall(334 * DAY_MS);
    expect((await ensure()).made).toEqual([]);

    clock.jumpWall(2 * DAY_MS);
    const renewed = await ensure();

    expect(renewed.made).toEqual(["apiserver", "admin"]);
    expect(renewed.ca).toBe(first.ca);
  });

  test("an authority near its end gets a successor, which signs nothing yet", async () => {
    const { ensure, clock } = await given();
    const first = await ensure();

    clock.jumpWall(3_260 * DAY_MS);
    const renewed = await ensure();

    expect(renewed.made).toEqual(["next ca", "apiserver", "admin"]);
    expect(renewed.ca.startsWith(first.ca)).toBe(true);
    expect(await readFile(join(place, "pki/ca.crt"), "utf8")).toBe(renewed.ca);
    expect((await ensure()).made).toEqual([]);
  });

  test("an authority without its key is not replaced either", async () => {
    const { ensure } = await given();
    await ensure();
    await rm(join(place, "pki/ca.key"));

    await expect(ensure()).rejects.toMatchObject({
      code: "BadConfig",
      message: expect.stringContaining("restore both files from a backup or remove both") as string,
    });
  });

  test("listening somewhere else needs another server certificate, and only that", async () => {
    const { ensure } = await given();
    await ensure();

    expect((await ensure("192.0.2.7")).made).toEqual(["apiserver"]);
  });

  test("a damaged leaf is replaced; a damaged authority is not, since clients trust it", async () => {
    const { ensure, directory } = await given();
    await ensure();
    await directory.write("pki/admin.key", "garbage");
    expect((await ensure()).made).toEqual(["admin"]);

    await directory.write("pki/ca.key", "garbage");

    await expect(ensure()).rejects.toMatchObject({ code: "BadConfig" });
  });
});
