// Writes objects one after the other, whatever happens, and says at the end what became of each: for runs in which the
// kernel is made to fail. The engine's own complaints go to stderr.
import { writeFileSync } from "node:fs";
import process from "node:process";
import { openLmdbStore } from "../../dist/src/apiserver/store/lmdb.js";
import { createSystemClock } from "../../dist/src/base/system-clock.js";

const { directory, writes, report } = JSON.parse(process.argv[2] ?? "");
const store = await openLmdbStore({ clock: createSystemClock() }, { directory });
const outcomes = [];
for (let write = 0; write < writes; write++) {
  const key = { resource: "pods", namespace: "default", name: `p${write}` };
  outcomes.push(
    await store
      .create(key, (revision) => `${revision} ${"x".repeat(3_000)}`)
      .then(
        ({ object }) => ({ name: key.name, revision: object.revision }),
        ({ code, message }) => ({ name: key.name, code, message }),
      ),
  );
}
const readable = [...store.scan({ resource: "pods" })].map(({ key, revision }) => ({
  name: key.name,
  revision,
}));
const { revision, health } = store;
await store.close();
writeFileSync(report, JSON.stringify({ outcomes, readable, revision, health: health.kind }));
