import { describe, expect, test } from "vitest";
import type { ObjectStore } from "../store/store.ts";
import { CONFIG_MAPS, givenEngine, MERGE, ownedBy, withDisk } from "./stage.testing.ts";

describe("the controllers", () => {
  test("write nothing once everything is as it should be", async () => {
    const { store, scheduler, stop, start, settle } = await givenEngine({ rootCa: "the authority" });
    await settle();
    const { revision } = store;

    await stop();
    start();
    await scheduler.runFor(60_000);

    expect(store.revision).toBe(revision);
  });

  test("that lost events look at everything again", async () => {
    const { ok, send, settle, store } = await givenEngine({ queueEventsMax: 3 });
    const owner = await ok("POST", CONFIG_MAPS, { metadata: { name: "owner" } });
    for (const name of ["a", "b", "c"]) {
      await ok("POST", CONFIG_MAPS, { metadata: { name, ownerReferences: [ownedBy(owner)] } });
    }

    // All in one go: more events than a watch keeps for its reader, the end of the owner among them.
    await Promise.all([
      send("DELETE", `${CONFIG_MAPS}/owner`),
      ...Array.from({ length: 20 }, (_, count) =>
        send("POST", CONFIG_MAPS, { metadata: { name: `x${count}` } }),
      ),
    ]);
    await settle();

    const names = Array.from(store.scan({ resource: "configmaps", namespace: "t" }), ({ key }) => key.name);
    expect(names.filter((name) => !name.startsWith("x"))).toEqual([]);
  });

  test("that cannot write try again, and a write they failed at does not stop the others", async () => {
    const disk = { isFull: false };
    const { ok, send, idle, scheduler, statusOf, logged } = await givenEngine({
      wrapStore: (store) => withDisk(store, disk),
    });
    const owner = await ok("POST", CONFIG_MAPS, { metadata: { name: "owner" } });
    await ok("POST", CONFIG_MAPS, { metadata: { name: "dependant", ownerReferences: [ownedBy(owner)] } });

    disk.isFull = true;
    await send("DELETE", `${CONFIG_MAPS}/owner`);
    await idle();
    await scheduler.runFor(120_000);
    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(200);
    disk.isFull = false;
    await scheduler.runFor(30_000);

    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(404);
    expect(logged).toEqual(["warn reconcile failed", "info reconcile recovered"]);
  });

  test("leave alone what they cannot understand, and say so", async () => {
    const { ok, store, statusOf, settle, logged } = await givenEngine();
    await store.create({ resource: "pods", namespace: "t", name: "odd" }, () => "not JSON");
    await settle();

    const owner = await ok("POST", CONFIG_MAPS, { metadata: { name: "owner" } });
    await ok("POST", CONFIG_MAPS, { metadata: { name: "dependant", ownerReferences: [ownedBy(owner)] } });
    await ok("DELETE", `${CONFIG_MAPS}/owner`);

    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(404);
    // Once from each that looks into pods.
    expect(new Set(logged)).toEqual(
      new Set(["error cannot understand an object; a controller leaves it alone"]),
    );
  });

  test("stop when asked, and whoever waits for them to be idle is let go", async () => {
    const { send, stop, idle, store } = await givenEngine();
    await stop();
    const { revision } = store;

    await send("POST", CONFIG_MAPS, { metadata: { name: "a" } });
    await idle();

    expect(store.revision).toBe(revision + 1);
  });

  test("save a dependant that gets a living owner at the last moment", async () => {
    const { ok, send, settle, statusOf } = await givenEngine();
    const [a, b] = [
      await ok("POST", CONFIG_MAPS, { metadata: { name: "a" } }),
      await ok("POST", CONFIG_MAPS, { metadata: { name: "b" } }),
    ];
    await ok("POST", CONFIG_MAPS, { metadata: { name: "d", ownerReferences: [ownedBy(a)] } });

    await Promise.all([
      send("PATCH", `${CONFIG_MAPS}/d`, { metadata: { ownerReferences: [ownedBy(a), ownedBy(b)] } }, MERGE),
      send("DELETE", `${CONFIG_MAPS}/a`),
    ]);
    await settle();

    expect(await statusOf(`${CONFIG_MAPS}/d`)).toBe(200);
  });

  test("collect a dependant that somebody writes to while they are about to delete it", async () => {
    let meanwhile = async () => undefined as unknown;
    const engine = await givenEngine({
      wrapStore: (store) =>
        beforeDeletes(store, () => {
          const once = meanwhile;
          meanwhile = async () => undefined;
          return once();
        }),
    });
    const owner = await engine.ok("POST", CONFIG_MAPS, { metadata: { name: "owner" } });
    await engine.ok("POST", CONFIG_MAPS, { metadata: { name: "d", ownerReferences: [ownedBy(owner)] } });
    meanwhile = () => engine.send("PATCH", `${CONFIG_MAPS}/d`, { metadata: { labels: { a: "b" } } }, MERGE);

    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`);
    expect((await engine.ok("GET", `${CONFIG_MAPS}/d`)).metadata.labels).toEqual({ a: "b" });
    await engine.scheduler.runFor(5);

    expect(await engine.statusOf(`${CONFIG_MAPS}/d`)).toBe(404);
  });
});

/** A store on which something happens before each deletion of the controllers. */
function beforeDeletes(store: ObjectStore, happen: () => Promise<unknown>): ObjectStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "delete") return value.bind(target) as unknown;
      return async (...deletion: Parameters<ObjectStore["delete"]>) => {
        await happen();
        return store.delete(...deletion);
      };
    },
  });
}
