import { expect, test } from "vitest";
import { silentLogger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import { SimScheduler } from "../../sim/scheduler.ts";
import { forSeeds } from "../../sim/seeds.ts";
import type { Changes, Environment, Purpose } from "./lmdb-environment.ts";
import { loadRecords } from "./lmdb-load.ts";
import { encodeHead, HEAD_KEY } from "./lmdb-records.ts";
import { Writer } from "./lmdb-writer.ts";
import { CommittedState } from "./state.ts";
import { StoreError, type CreateOutcome, type StoreEvent, type WriteOutcome } from "./store.ts";

/** A file of so many bytes: what is put must fit, and a part of it is for those who let go. */
class SmallDisk implements Environment {
  readonly records = new Map<string, Buffer>([
    [HEAD_KEY.toString("hex"), encodeHead({ compactedRevision: 1 })],
  ]);
  readonly #bytesMax: number;
  readonly #reserve: number;

  constructor(bytesMax: number, reserve: number) {
    this.#bytesMax = bytesMax;
    this.#reserve = reserve;
  }

  get usedBytes(): number {
    return [...this.records.values()].reduce((sum, value) => sum + value.length, 0);
  }

  async commit({ puts, removes }: Changes, purpose: Purpose = "growth"): Promise<void> {
    // Copy on write: the new is written before the old goes.
    const needed = this.usedBytes + puts.reduce((sum, { value }) => sum + value.length, 0);
    const kept = { growth: 1, steady: 1 / 2, removal: 0 }[purpose] * this.#reserve;
    await Promise.resolve();
    if (needed + kept > this.#bytesMax) throw new StoreError("Full", "no room");
    for (const key of removes) this.records.delete(key.toString("hex"));
    for (const { key, value } of puts) this.records.set(key.toString("hex"), value);
  }

  shortage(): StoreError | undefined {
    return undefined;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  sorted(): [Buffer, Buffer][] {
    return [...this.records]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, value]) => [Buffer.from(key, "hex"), value]);
  }
}

const OBJECT_CHARS_MAX = 4_000;
const RESERVE = 4 * OBJECT_CHARS_MAX;

function given(random: Random) {
  const clock = new SimScheduler(random).createClock();
  const disk = new SmallDisk(RESERVE * (2 + random.int(6)), RESERVE);
  const state = new CommittedState(clock, {}, 1);
  const writer = new Writer({ clock, log: silentLogger, environment: disk }, state);
  const submit = (type: StoreEvent["type"], name: string, text: string, expected?: number) =>
    new Promise<CreateOutcome | WriteOutcome | StoreError>((resolve) =>
      writer.submit({
        type,
        key: { resource: "pods", namespace: "default", name },
        render: () => text,
        expected,
        resolve,
        reject: (error) => resolve(error as StoreError),
      }),
    );
  const view = (of: CommittedState) =>
    [...of.objects()].map(({ key, revision, text }) => [key.name, revision, text]);
  const restarted = () => loadRecords({ path: "data.mdb", records: disk.sorted() }, clock, {});
  return { state, submit, view, restarted };
}

let refusals = 0;

test("on a disk of any size, whatever is asked of it: deletions and updates that do not grow work, and a restart finds what was acknowledged", () =>
  forSeeds(40, async (random) => {
    const { state, submit, view, restarted } = given(random);
    for (let round = 0; round < 150; round++) {
      const writes = Array.from({ length: 1 + random.int(4) }, async () => {
        const name = `p${random.int(30)}`;
        const current = state.get({ resource: "pods", namespace: "default", name });
        const chars = random.int(OBJECT_CHARS_MAX);
        const grows = current === undefined || chars > current.text.length;
        const type = current === undefined ? "created" : random.int(4) === 0 ? "deleted" : "updated";
        const outcome = await submit(type, name, "x".repeat(chars), current?.revision);
        if (!(outcome instanceof StoreError)) return;
        refusals++;
        expect([outcome.code, type === "deleted" || !grows], `round ${round}`).toEqual(["Full", false]);
      });
      await Promise.all(writes);
      const found = restarted();
      expect(found.revision, `round ${round}`).toBe(state.revision);
      expect(view(found), `round ${round}`).toEqual(view(state));
    }
    for (const { key, revision } of [...state.objects()])
      expect(await submit("deleted", key.name, "", revision)).toMatchObject({ kind: "committed" });
    expect([...restarted().objects()]).toEqual([]);
  }).then(() => expect(refusals).toBeGreaterThan(100)));
