import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { openLmdbStore } from "../../src/apiserver/store/lmdb.ts";
import type { ObjectStore } from "../../src/apiserver/store/store.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { scratch } from "./mooring.ts";

/** What the store does when the disk is full or fails: for real, on a small disk and with a kernel that is made to fail. */

const { path, remove } = scratch();
afterAll(remove);

const run = (command: string, ...args: string[]) => spawnSync(command, args, { encoding: "utf8" });
const canTrace = run("strace", "-f", "-o", "/dev/null", "true").status === 0;
const canMount = process.getuid?.() === 0 && mountSmall(join(path, "probe"));
if (canMount) run("umount", join(path, "probe"));
if (!canTrace) process.stdout.write("left out: a store on a failing disk: strace cannot trace here\n");
if (!canMount) process.stdout.write("left out: a store on a full disk: tmpfs cannot be mounted here\n");

describe.skipIf(!canMount)("a full disk", () => {
  const disk = join(path, "small");
  afterAll(() => run("umount", disk));

  test("refuses writes, serves reads and watches, and takes writes again once there is room", async () => {
    mountSmall(disk);
    const ballast = join(disk, "ballast");
    writeFileSync(ballast, Buffer.alloc(2 * 2 ** 20));
    const open = () =>
      openLmdbStore({ clock: createSystemClock() }, { directory: join(disk, "store"), mapBytes: 65_536 });
    const store = await open();
    const watch = store.watch({ resource: "pods", afterRevision: 1 }, () => undefined);
    const key = (name: string) => ({ resource: "pods", namespace: "default", name });

    const written: string[] = [];
    const refusal = await fill(store, written);
    const health = store.health;
    const again = await store.create(key("again"), () => "x".repeat(30_000)).catch((error: unknown) => error);
    const served = [...store.scan({ resource: "pods" })].length;
    rmSync(ballast);
    const later = await store.create(key("later"), () => "x");

    expect(written.length).toBeGreaterThan(100);
    expect(refusal).toMatchObject({
      code: "Full",
      message: expect.stringMatching(
        /^Full: write to .*data\.mdb: the disk is full \(\d+ kB free, \d+ kB needed.*; delete some, or make room on the disk$/,
      ),
    });
    expect(again).toMatchObject({ code: "Full" });
    expect(health.kind).toBe("full");
    expect(served).toBe(written.length);
    expect(later).toMatchObject({ kind: "committed", object: { revision: written.length + 2 } });
    expect(store.health).toEqual({ kind: "ok" });
    const events: string[] = [];
    for (let event = watch.take(); event !== undefined; event = watch.take())
      events.push(event.object.key.name);
    expect(events).toEqual([...written, "later"]);

    await store.close();
    const restarted = await open();
    expect(restarted.revision).toBe(written.length + 2);
    expect([...restarted.scan({ resource: "pods" })].map(({ key: { name } }) => name).sort()).toEqual(
      [...written, "later"].sort(),
    );
    await restarted.close();
  });
});

describe.skipIf(!canTrace)("a failing disk", () => {
  for (const [what, inject, code, health] of [
    ["a sync that fails", "fdatasync:error=EIO:when=4", "WriteFailed", "failed"],
    ["a meta page that cannot be written", "pwrite64:error=EIO:when=12", "WriteFailed", "failed"],
    [
      "a meta page that cannot be written, nor put back",
      "pwrite64:error=EIO:when=12+",
      "WriteFailed",
      "failed",
    ],
    ["a sync that finds no space", "fdatasync:error=ENOSPC:when=4", "Full", undefined],
    ["a meta page without space", "pwrite64:error=ENOSPC:when=12", "Full", undefined],
  ] as const) {
    test(`${what}: what was acknowledged stays readable and is there after a restart, and nothing else`, async () => {
      const directory = join(path, `failing-${inject.replaceAll(/\W/g, "-")}`);
      const store = await openLmdbStore({ clock: createSystemClock() }, { directory });
      await store.close();

      const { outcomes, readable, ...end } = runUnder(inject, directory);

      const acknowledged = outcomes.filter((outcome) => outcome.code === undefined);
      const refused = outcomes.filter((outcome) => outcome.code !== undefined);
      expect(new Set(refused.map((outcome) => outcome.code))).toEqual(new Set([code]));
      expect(byName(readable)).toEqual(byName(acknowledged));
      expect(end.revision).toBe(1 + acknowledged.length);
      if (health !== undefined) expect(end.health).toBe(health);
      const restarted = await openLmdbStore({ clock: createSystemClock() }, { directory });
      expect(byName(objectsOf(restarted))).toEqual(byName(acknowledged));
      const next = await restarted.create({ resource: "pods", namespace: "x", name: "next" }, () => "");
      expect(next).toMatchObject({ kind: "committed", object: { revision: end.revision + 1 } });
      await restarted.close();
    });
  }
});

interface Outcome {
  readonly name: string;
  readonly revision?: number;
  readonly code?: string;
}

interface Report {
  readonly outcomes: readonly Outcome[];
  readonly readable: readonly Outcome[];
  readonly revision: number;
  readonly health: string;
}

function mountSmall(at: string): boolean {
  mkdirSync(at);
  return run("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", at).status === 0;
}

/** Writes until one is refused; the names of the others go to `written`. */
async function fill(store: ObjectStore, written: string[]): Promise<unknown> {
  for (let write = 0; ; write++) {
    const key = { resource: "pods", namespace: "default", name: `p${write}` };
    try {
      await store.create(key, () => "x".repeat(3_000 + (write % 20 === 0 ? 20_000 : 0)));
      written.push(key.name);
    } catch (error) {
      return error;
    }
  }
}

/** The kernel's answer to one system call is replaced, in each thread of the engine that comes that far. */
function runUnder(inject: string, directory: string): Report {
  const report = `${directory}.json`;
  const program = fileURLToPath(new URL("./store-sequence.mjs", import.meta.url));
  const input = JSON.stringify({ directory, writes: 25, report });
  const trace = ["-f", "-o", "/dev/null", "-e", "trace=fdatasync,pwrite64", "-e", `inject=${inject}`];
  const { status, stderr } = run("strace", ...trace, process.execPath, program, input);
  expect(status, stderr).toBe(0);
  return JSON.parse(readFileSync(report, "utf8")) as Report;
}

function objectsOf(store: ObjectStore): Outcome[] {
  return [...store.scan({ resource: "pods" })].map(({ key, revision }) => ({ name: key.name, revision }));
}

function byName(outcomes: readonly Outcome[]): Outcome[] {
  return outcomes
    .map(({ name, revision }) => ({ name, ...(revision === undefined ? {} : { revision }) }))
    .sort((a, b) => a.name.localeCompare(b.name));
}
