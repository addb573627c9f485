import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { openLmdbStore } from "../../src/apiserver/store/lmdb.ts";
import type { ObjectStore } from "../../src/apiserver/store/store.ts";
import type { StoreEvent } from "../../src/apiserver/store/store.ts";
import type { Random } from "../../src/base/random.ts";
import { createSeededRandom } from "../../src/base/seeded-random.ts";
import { createSystemClock } from "../../src/base/system-clock.ts";
import { scratch } from "../e2e/mooring.ts";

/**
 * Kills a process in the middle of its writes, again and again on the same files, and looks at what is left.
 * `MOORING_CRASH_ROUNDS=200 npm run test:e2e -- store-crash` is the long version.
 *
 * A killed process loses what it had in memory, not what the kernel had taken: this shows that nothing is told before
 * it is committed and that no kill leaves files in need of repair. That a commit reaches the disk itself is
 * seen in its system calls; see `lmdb-environment.ts`.
 */
const ROUNDS = Number(process.env["MOORING_CRASH_ROUNDS"] ?? 20);
const WRITERS = fileURLToPath(new URL("../e2e/store-writers.mjs", import.meta.url));
/** Writes of one round; history reaches back over all of it, and is compacted up to its start. */
const WRITES_MAX = 2_500;
const STORE_OPTIONS = { historyMsMin: 0, historyRevisionsMin: WRITES_MAX + 200, mapBytes: 65_536 };

interface Committed {
  readonly revision: number;
  readonly type: StoreEvent["type"];
  readonly key: { readonly resource: string; readonly namespace: string; readonly name: string };
  readonly write: number;
  readonly padding: number;
}

/** What the process told before it died. */
interface Told {
  readonly committed: readonly Committed[];
  readonly seen: readonly number[];
  readonly listed: readonly number[];
}

const { path, remove } = scratch();
afterAll(remove);
const directory = join(path, "store");

test(
  `${ROUNDS} times killed: every acknowledged write is there, no revision is missing or used twice, watches go on`,
  { timeout: 600_000 },
  async () => {
    const random = createSeededRandom(Number(process.env["MOORING_SEED"] ?? 1));
    const model = new Map<string, string>();
    let revision = 1;
    const totals = { committed: 0, unacknowledged: 0, beforeFirstWrite: 0 };

    for (let round = 0; round < ROUNDS; round++) {
      const told = await runAndKill(random, { seed: round });

      const store = await openStore(directory);
      const events = eventsAfter(store, revision);
      checkRevisions(events, { from: revision, to: store.revision });
      checkTold(told, events, round, revision);
      apply(model, events);
      expect(stateOf(store), `round ${round}`).toEqual([...model].sort());
      checkResumes(store, random, events);
      totals.committed += told.committed.length;
      totals.unacknowledged += events.length - told.committed.length;
      totals.beforeFirstWrite += told.committed.length === 0 ? 1 : 0;
      revision = store.revision;
      await store.close();
    }

    process.stdout.write(`killed ${ROUNDS} times: ${JSON.stringify({ ...totals, revision })}\n`);
    expect(totals.committed).toBeGreaterThan(ROUNDS * 50);
  },
);

async function openStore(at: string): Promise<ObjectStore> {
  return openLmdbStore({ clock: createSystemClock() }, { ...STORE_OPTIONS, directory: at });
}

/** Ends it after some of its lines, or, one time in ten, at some moment of its start. */
async function runAndKill(random: Random, { seed }: { seed: number }): Promise<Told> {
  const input = {
    options: { ...STORE_OPTIONS, directory },
    seed,
    writersCount: 1 + random.int(32),
    writesMax: WRITES_MAX,
  };
  const child = spawn(process.execPath, [WRITERS, JSON.stringify(input)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const enough = 1 + random.int(random.int(3) === 0 ? 4_000 : 400);
  let output = "";
  let lines = 0;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    lines += text.split("\n").length - 1;
    if (lines >= enough) child.kill("SIGKILL");
  });
  if (random.int(10) === 0) {
    const early = sleep(random.int(150)).then(() => child.kill("SIGKILL"));
    await Promise.all([closed, early]);
  }
  await closed;
  expect(child.signalCode, output.slice(-500)).toBe("SIGKILL");
  // The last line may have been cut off in the middle.
  return parseTold(output.split("\n").slice(0, -1));
}

function parseTold(lines: readonly string[]): Told {
  const values = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1));
  return {
    committed: values("committed").map((text) => JSON.parse(text) as Committed),
    seen: values("seen").map(Number),
    listed: values("listed").map(Number),
  };
}

function eventsAfter(store: ObjectStore, afterRevision: number): StoreEvent[] {
  const watch = store.watch({ resource: "pods", afterRevision }, () => undefined);
  const events: StoreEvent[] = [];
  for (let event = watch.take(); event !== undefined; event = watch.take()) events.push(event);
  expect(watch.state).toBe("open");
  return events;
}

function checkRevisions(events: readonly StoreEvent[], { from, to }: { from: number; to: number }): void {
  const expected = Array.from({ length: to - from }, (_, index) => from + index + 1);
  expect(events.map(({ object }) => object.revision)).toEqual(expected);
}

function checkTold(
  { committed, seen, listed }: Told,
  events: readonly StoreEvent[],
  seed: number,
  from: number,
): void {
  const byRevision = new Map(events.map((event) => [event.object.revision, event]));
  for (const { revision, type, key, write, padding } of committed) {
    const text = JSON.stringify({ revision, seed, write, padding: "x".repeat(padding) });
    expect(byRevision.get(revision), `round ${seed}`).toMatchObject({
      type,
      object: { key, revision, text },
    });
  }
  expect(new Set(committed.map(({ revision }) => revision)).size).toBe(committed.length);
  // The watch of the killed process saw each event once, in order, and none that is not there.
  expect(seen).toEqual(events.slice(0, seen.length).map(({ object }) => object.revision));
  expect(Math.max(from, ...listed)).toBeLessThanOrEqual(from + events.length);
}

function apply(model: Map<string, string>, events: readonly StoreEvent[]): void {
  for (const { type, object } of events) {
    const id = `${object.key.namespace}\0${object.key.name}`;
    if (type === "deleted") model.delete(id);
    else model.set(id, object.text);
  }
}

function stateOf(store: ObjectStore): [string, string][] {
  return [...store.scan({ resource: "pods" })].map(({ key, text }) => [
    `${key.namespace}\0${key.name}`,
    text,
  ]);
}

/** A client that comes back with any revision it saw gets exactly what came after. */
function checkResumes(store: ObjectStore, random: Random, events: readonly StoreEvent[]): void {
  for (let client = 0; client < 5 && events.length > 0; client++) {
    const seen = random.int(events.length);
    expect(eventsAfter(store, events[seen]!.object.revision)).toEqual(events.slice(seen + 1));
  }
}
