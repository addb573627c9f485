import { describe, expect, test } from "vitest";
import { createMemoryStore, type MemoryStoreOptions } from "../store/memory.ts";
import { createIndexFeed } from "./index-feed.ts";
import { bareStore } from "./scenario.testing.ts";

/** An index that keeps names, and counts how often it was emptied. */
function givenIndex(options: MemoryStoreOptions = {}) {
  const store = createMemoryStore({ clock: bareStore().clock }, options);
  const names = new Set<string>();
  let clears = 0;
  const feed = createIndexFeed(store, "things", {
    put: ({ name }) => void names.add(name),
    remove: ({ name }) => void names.delete(name),
    clear: () => {
      names.clear();
      clears++;
    },
  });
  const key = (name: string) => ({ resource: "things", namespace: "", name });
  return {
    store,
    clears: () => clears,
    create: (name: string) => store.create(key(name), () => JSON.stringify({ metadata: { name } })),
    remove: (name: string) =>
      store.delete(key(name), () => "{}", { expected: store.get(key(name))?.revision ?? 0 }),
    seen: () => {
      feed.sync();
      return [...names].sort();
    },
  };
}

describe("an index fed from the store", () => {
  test("shows what was there before and every write since", async () => {
    const index = givenIndex();
    await index.create("a");
    expect(index.seen()).toEqual(["a"]);

    await index.create("b");
    await index.remove("a");

    expect(index.seen()).toEqual(["b"]);
    expect(index.clears()).toBe(1);
  });

  test("that nobody asks keeps up by itself and is built only once", async () => {
    const index = givenIndex();
    index.seen();

    for (let count = 0; count < 2_500; count++) await index.create(`thing-${count}`);

    expect(index.seen()).toHaveLength(2_500);
    expect(index.clears()).toBe(1);
  });

  test("whose events were lost is built anew and forgets what went meanwhile", async () => {
    const index = givenIndex({ queueEventsMax: 2 });
    await index.create("a");
    index.seen();

    for (const name of ["b", "c", "d"]) await index.create(name);
    await index.remove("a");

    expect(index.seen()).toEqual(["b", "c", "d"]);
    expect(index.clears()).toBe(2);
  });
});
