import { describe, expect, test } from "vitest";
import type { ConfigMap } from "../api/config-map.ts";
import type { ObjectKey } from "../object.ts";
import { ObjectStore, type Delta } from "./store.ts";
import type { WatchEvent } from "./watch.ts";

const configMap = (name: string, version: number, { uid = `uid-${name}`, labels = {} } = {}): ConfigMap => ({
  metadata: { namespace: "ns", name, uid, resourceVersion: String(version), labels },
});
const added = (object: ConfigMap): WatchEvent<ConfigMap> => ({ type: "ADDED", object });
const modified = (object: ConfigMap): WatchEvent<ConfigMap> => ({ type: "MODIFIED", object });
const deleted = (object: ConfigMap): WatchEvent<ConfigMap> => ({ type: "DELETED", object });

/** Deltas in short: `added a@1`, `tombstone a@1`. */
function tell(deltas: readonly Delta<ConfigMap>[]): string[] {
  return deltas.map((delta) => {
    const what = delta.kind === "deleted" && delta.tombstone ? "tombstone" : delta.kind;
    return `${what} ${delta.object.metadata.name ?? ""}@${delta.object.metadata.resourceVersion ?? ""}`;
  });
}

describe("events of one object", () => {
  for (const [story, events, expected] of [
    [
      "a life",
      [added(configMap("a", 1)), modified(configMap("a", 2)), deleted(configMap("a", 3))],
      ["added a@1", "updated a@2", "deleted a@3"],
    ],
    ["the same event twice", [added(configMap("a", 1)), added(configMap("a", 1))], ["added a@1"]],
    ["an older state after a newer", [added(configMap("a", 9)), modified(configMap("a", 8))], ["added a@9"]],
    [
      "9 is older than 10, though not as text",
      [added(configMap("a", 10)), modified(configMap("a", 9))],
      ["added a@10"],
    ],
    [
      "a change after the end, sent again",
      [added(configMap("a", 1)), deleted(configMap("a", 3)), modified(configMap("a", 2))],
      ["added a@1", "deleted a@3"],
    ],
    [
      "a deletion of a former namesake",
      [added(configMap("a", 5, { uid: "new" })), deleted(configMap("a", 4))],
      ["added a@5"],
    ],
    [
      "a deletion at the object's own version",
      [added(configMap("a", 5)), deleted(configMap("a", 5))],
      ["added a@5", "deleted a@5"],
    ],
    ["a deletion of what was never there", [deleted(configMap("a", 5))], []],
    [
      "back again after its end",
      [added(configMap("a", 1)), deleted(configMap("a", 2)), added(configMap("a", 3, { uid: "new" }))],
      ["added a@1", "deleted a@2", "added a@3"],
    ],
    [
      "another object under the same name, the end untold",
      [added(configMap("a", 1)), modified(configMap("a", 4, { uid: "new" }))],
      ["added a@1", "tombstone a@1", "added a@4"],
    ],
  ] as const) {
    test(story, () => {
      const store = new ObjectStore<ConfigMap>();

      const told = events.flatMap((event) => tell(store.apply(event)));

      expect(told).toEqual(expected);
    });
  }
});

test("an update tells the old object too", () => {
  const store = new ObjectStore<ConfigMap>();
  const old = configMap("a", 1);
  store.apply(added(old));

  const [delta] = store.apply(modified(configMap("a", 2)));

  expect(delta).toMatchObject({ kind: "updated", old });
});

test("a whole state tells the difference, and keeps the very objects that did not change", () => {
  const store = new ObjectStore<ConfigMap>();
  const kept = configMap("kept", 1);
  for (const object of [kept, configMap("changed", 2), configMap("gone", 3)]) store.apply(added(object));

  const replacement = store.beginReplace();
  for (const object of [configMap("kept", 1), configMap("changed", 5), configMap("new", 6)])
    replacement.offer(object);
  const before = store.size;
  const told = tell(replacement.commit());

  expect(before).toBe(3);
  expect(told.sort()).toEqual(["added new@6", "tombstone gone@3", "updated changed@5"]);
  expect(store.get("ns/kept" as ObjectKey)).toBe(kept);
});

test("a state from a restored backup is the truth, although its versions are older", () => {
  const store = new ObjectStore<ConfigMap>();
  store.apply(added(configMap("a", 1_000)));

  const replacement = store.beginReplace();
  replacement.offer(configMap("a", 7));

  expect(tell(replacement.commit())).toEqual(["updated a@7"]);
  expect(tell(store.apply(modified(configMap("a", 8))))).toEqual(["updated a@8"]);
});

test("changes during a streaming list: the newest version wins, a deletion takes out", () => {
  const store = new ObjectStore<ConfigMap>();
  const replacement = store.beginReplace();
  replacement.offer(configMap("a", 5));
  replacement.offer(configMap("a", 4));
  replacement.offer(configMap("b", 5));
  replacement.retract(configMap("b", 6));

  expect(tell(replacement.commit())).toEqual(["added a@5"]);
});

test("an index follows every change and forgets empty values", () => {
  const store = new ObjectStore<ConfigMap>({ app: ({ metadata }) => Object.values(metadata.labels ?? {}) });
  const names = (value: string) => store.byIndex("app", value).map(({ metadata }) => metadata.name);
  store.apply(added(configMap("a", 1, { labels: { app: "db", tier: "back" } })));
  store.apply(added(configMap("b", 2, { labels: { app: "db" } })));
  expect(names("db")).toEqual(["a", "b"]);
  expect(names("back")).toEqual(["a"]);

  store.apply(modified(configMap("a", 3, { labels: { app: "web" } })));
  store.apply(deleted(configMap("b", 4)));

  expect(names("db")).toEqual([]);
  expect(names("back")).toEqual([]);
  expect(names("web")).toEqual(["a"]);
  expect(() => store.byIndex("ap", "db")).toThrow(/index ap: not one of app/);
});
