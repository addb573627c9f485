import { mkdtempSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openLmdbStore } from "../apiserver/store/lmdb.ts";
import { createSystemClock } from "../base/system-clock.ts";
import { lockDirectory } from "./lock.ts";
import { repairDataDirectory } from "./repair.ts";

const root = mkdtempSync(join(tmpdir(), "mooring-repair-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const clock = createSystemClock();
const key = (name: string) => ({ resource: "configmaps", namespace: "default", name });

const dataDir = join(root, "damaged");

/**
 * A data directory with ten ConfigMaps, of which the text of one has a byte that was not written. One commit and one
 * directory for all tests: each commit waits for the disk twice, which is seconds where others write too.
 */
beforeAll(async () => {
  mkdirSync(join(dataDir, "pki"), { recursive: true });
  writeFileSync(join(dataDir, "pki", "ca.crt"), "certificate");
  const directory = join(dataDir, "store");
  const store = await openLmdbStore({ clock }, { directory });
  const indexes = Array.from({ length: 10 }, (_, index) => index);
  await Promise.all(indexes.map((index) => store.create(key(`c${index}`), () => `text of c${index}.`)));
  await store.close();
  const file = join(directory, "data.mdb");
  const bytes = readFileSync(file);
  // On every page where it stands, so that no earlier copy of the page helps.
  for (let at = bytes.indexOf("text of c4."); at >= 0; at = bytes.indexOf("text of c4.", at + 1))
    bytes[at + 1] = 0x45;
  writeFileSync(file, bytes);
});

test("one flipped byte: the server does not start, a repaired copy does, without that object and with all others", async () => {
  const file = join(dataDir, "store", "data.mdb");
  const [before, changedAtMs] = [readFileSync(file), statSync(file).mtimeMs];
  const to = join(root, "flipped-repaired");

  const refusal = await openLmdbStore({ clock }, { directory: join(dataDir, "store") }).catch(String);
  const repaired = await repairDataDirectory({ clock }, { dataDir, to });

  expect(refusal).toContain("mooring apiserver repair");
  expect(repaired).toMatchObject({
    objects: 9,
    lost: [{ key: key("c4"), revision: 6 }],
    uncertain: [],
    outdated: [],
  });
  expect(repaired.files).toEqual(["pki/ca.crt"]);
  expect([readFileSync(file).equals(before), statSync(file).mtimeMs]).toEqual([true, changedAtMs]);
  const store = await openLmdbStore({ clock }, { directory: join(to, "store") });
  const found = [...store.scan({ resource: "configmaps" })].map(({ text }) => text);
  expect(found).toEqual([0, 1, 2, 3, 5, 6, 7, 8, 9].map((index) => `text of c${index}.`));
  // Whoever watched the damaged server is told to list again.
  expect([store.revision > 1_000_000_000, store.compactedRevision]).toEqual([true, store.revision]);
  await store.close();
  expect(statSync(join(to, "store", "data.mdb")).mode & 0o777).toBe(0o600);
  expect(statSync(to).mode & 0o777).toBe(0o700);
});

test("it is refused while a server has the directory, into one that is not empty, and into itself", async () => {
  const crowded = join(root, "crowded");
  mkdirSync(crowded);
  writeFileSync(join(crowded, "something"), "");
  const repair = (to: string) => repairDataDirectory({ clock }, { dataDir, to }).catch(String);

  const results = [await repair(crowded), await repair(dataDir)];
  const lock = await lockDirectory(dataDir);
  results.push(await repair(join(root, "never")));
  await lock.release();

  expect(results).toEqual([
    expect.stringContaining("it is not empty"),
    expect.stringContaining("--to must name another directory"),
    expect.stringContaining(`is used by process ${process.pid}`),
  ]);
});

test("a directory without a store is named", async () => {
  await expect(repairDataDirectory({ clock }, { dataDir: root, to: join(root, "x") })).rejects.toThrow(
    /cannot repair .*store: .*there is no store in it/,
  );
});
