// The process that the crash test kills: writers, a watcher and compaction on one store, all at once. Whatever
// it learns it says at once, one line each, with a write that is complete when it returns:
//
//   committed {revision, type, name, write, padding}   an acknowledged write
//   seen N        an event of revision N reached a watch
//   listed N      the revision a list would have been served at
//   compacting N                                       about to
/* global AbortController, Buffer, setInterval */
import { writeSync } from "node:fs";
import process from "node:process";
import { openLmdbStore } from "../../dist/src/apiserver/store/lmdb.js";
import { createSeededRandom } from "../../dist/src/base/seeded-random.js";
import { createSystemClock } from "../../dist/src/base/system-clock.js";

const { options, seed, writersCount, writesMax } = JSON.parse(process.argv[2] ?? "");
const random = createSeededRandom(seed);
const store = await openLmdbStore({ clock: createSystemClock() }, options);
const startedAt = store.revision;

const watch = store.watch({ resource: "pods", afterRevision: startedAt }, tellSeen);
function tellSeen() {
  for (let event = watch.take(); event !== undefined; event = watch.take())
    say(`seen ${event.object.revision}`);
}
tellSeen();

let writes = 0;
await Promise.all([...Array.from({ length: writersCount }, runWriter), compact()]);
// All said; whoever started this process ends it.
setInterval(() => undefined, 60_000);

/** Tries until the reader has made room: a line that is not out was not said. */
function say(line) {
  let rest = Buffer.from(`${line}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

async function runWriter() {
  while (writes < writesMax) {
    const write = writes++;
    const key = { resource: "pods", namespace: `n${random.int(3)}`, name: `p${random.int(40)}` };
    const padding = random.int(random.int(20) === 0 ? 30_000 : 800);
    const { type, outcome } = await change(key, write, padding);
    if (outcome.kind !== "committed") continue;
    const { revision } = outcome.object;
    say(`committed ${JSON.stringify({ revision, type, key, write, padding })}`);
    if (write % 50 === 0) say(`listed ${store.revision}`);
  }
}

async function change(key, write, padding) {
  const render = (revision) => JSON.stringify({ revision, seed, write, padding: "x".repeat(padding) });
  const current = store.get(key);
  if (current === undefined) return { type: "created", outcome: await store.create(key, render) };
  const condition = { expected: current.revision };
  if (random.int(3) === 0) return { type: "deleted", outcome: await store.delete(key, render, condition) };
  return { type: "updated", outcome: await store.update(key, render, condition) };
}

/** Never past the start of this process: the test wants to see every event since. */
async function compact() {
  for (let step = 0; step < 5; step++) {
    await store.reach(startedAt + 20 * step, new AbortController().signal);
    const revision = Math.max(store.compactedRevision, startedAt - 100 + 20 * step);
    say(`compacting ${Math.min(revision, startedAt)}`);
    await store.compact(Math.min(revision, startedAt));
  }
}
