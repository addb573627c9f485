import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openLmdbStore } from "../../src/apiserver/store/lmdb.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { scratch } from "../e2e/mooring.ts";
import { canMount, fill, makeRoom, SmallDisks } from "../e2e/small-disk.ts";

/**
 * A store on disks with 0 to 64 kB free, for real: what was acknowledged stays, and deletions work.
 * `MOORING_EVERY_STEP=1` tries every 4 kB.
 */
const STEP_KB = process.env["MOORING_EVERY_STEP"] === undefined ? 32 : 4;
const FREE_KB = Array.from({ length: 64 / STEP_KB + 1 }, (_, index) => index * STEP_KB);

const place = scratch();
const disks = new SmallDisks(place.path);
if (!canMount) process.stdout.write("left out: full disks: file systems can be mounted by root only\n");
afterEach(() => disks.removeAll());
afterAll(place.remove);

describe.skipIf(!canMount).each(["tmpfs", "ext4"] as const)("a store on a %s", (type) => {
  for (const freeKb of FREE_KB)
    test(`with ${freeKb} kB free: 50 updates and every deletion work, and a restart finds what was acknowledged`, async () => {
      const disk = disks.make(`store-${type}-${freeKb}`, type, 24);
      const open = () => openLmdbStore({ clock: createSystemClock() }, { directory: join(disk, "store") });
      const key = (index: number) => ({ resource: "pods", namespace: "default", name: `p${index}` });
      const first = await open();
      for (let index = 0; index < 60; index++)
        await first.create(key(index), () => "x".repeat(1_000 + 100 * index));
      fill(disk, freeKb);

      for (let index = 0; index < 50; index++) {
        const { revision, text } = first.get(key(index))!;
        expect(
          (await first.update(key(index), () => "y".repeat(text.length), { expected: revision })).kind,
        ).toBe("committed");
      }
      await first.close();
      const second = await open();

      expect([...second.scan({ resource: "pods" })].filter(({ text }) => text.startsWith("y"))).toHaveLength(
        50,
      );
      for (const { key: at, revision } of [...second.scan({ resource: "pods" })])
        expect((await second.delete(at, () => "", { expected: revision })).kind).toBe("committed");
      await second.close();
      const third = await open();
      expect([...third.scan({ resource: "pods" })]).toEqual([]);
      makeRoom(disk);
      expect((await third.create(key(1), () => "again")).kind).toBe("committed");
      expect(third.health.kind).toBe("ok");
      await third.close();
    });
});
