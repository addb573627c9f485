import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { givenServer } from "../scenario.testing.ts";
import { createNamespaceController } from "./namespace.ts";
import { CLAIMS, claim, CONFIG_MAPS, givenEngine, MERGE, pod, PODS, withDisk } from "./stage.testing.ts";

const NAMESPACE = "/api/v1/namespaces/t";

type Conditions = readonly { type: string; status: string; message: string; lastTransitionTime: string }[];

/** Its deletion waits for `stay`; `createLate` puts something into it that no request could. */
async function givenTerminating(disk = { isFull: false }) {
  const engine = await givenEngine({ wrapStore: (store) => withDisk(store, disk) });
  await engine.ok("POST", CONFIG_MAPS, { metadata: { name: "stay", finalizers: ["ex.io/x"] } });
  await engine.ok("DELETE", NAMESPACE);
  const key = { resource: "configmaps", namespace: "t", name: "late" };
  const createLate = async () => {
    const metadata = { name: "late", namespace: "t", uid: "late-uid" };
    await engine.store.create(key, (revision) =>
      JSON.stringify({ metadata: { ...metadata, resourceVersion: String(revision) } }),
    );
    await engine.settle();
  };
  return { ...engine, createLate };
}

describe("a namespace that is deleted", () => {
  test("goes at once when nothing in it has to wait", async () => {
    const { ok, statusOf, store } = await givenEngine({ rootCa: "the authority" });
    await ok("POST", CONFIG_MAPS, { metadata: { name: "a" } });

    const answer = await ok("DELETE", NAMESPACE);

    expect(answer.status).toMatchObject({ phase: "Terminating" });
    expect(await statusOf(NAMESPACE)).toBe(404);
    expect([...store.scan({ resource: "configmaps", namespace: "t" })]).toEqual([]);
  });

  test("goes with its claims and pods: content first, and nothing new comes in", async () => {
    const { ok, send, statusOf } = await givenEngine();
    await ok("POST", CLAIMS, claim("c"));
    await ok("POST", PODS, pod("p", { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] }));

    await ok("DELETE", NAMESPACE);

    const late = await send("POST", CONFIG_MAPS, { metadata: { name: "late" } });
    expect([late.status, late.body.details.causes.map(({ reason }) => reason)]).toEqual([
      403,
      ["NamespaceTerminating"],
    ]);
    expect([await statusOf(`${PODS}/p`), await statusOf(`${CLAIMS}/c`), await statusOf(NAMESPACE)]).toEqual([
      200, 200, 200,
    ]);

    await ok("DELETE", `${PODS}/p`, { gracePeriodSeconds: 0 }); // what its node does in the end
    expect([await statusOf(`${PODS}/p`), await statusOf(`${CLAIMS}/c`), await statusOf(NAMESPACE)]).toEqual([
      404, 404, 404,
    ]);
  });

  test("says in its conditions what it waits for, and times move only with a status", async () => {
    const { ok, scheduler, statusOf } = await givenEngine();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "one", finalizers: ["ex.io/x", "ex.io/y"] } });
    await ok("POST", CONFIG_MAPS, { metadata: { name: "two", finalizers: ["ex.io/x"] } });
    const conditions = async () =>
      Object.fromEntries(
        ((await ok("GET", NAMESPACE)).status["conditions"] as Conditions).map((one) => [one.type, one]),
      );

    await ok("DELETE", NAMESPACE);
    const before = await conditions();
    await scheduler.runFor(5_000);
    await ok("PATCH", `${CONFIG_MAPS}/one`, { metadata: { finalizers: null } }, MERGE);
    await scheduler.runFor(1_000);
    const after = await conditions();

    expect(before["NamespaceContentRemaining"]).toMatchObject({
      status: "True",
      message: "Some resources are remaining: configmaps. has 2 resource instances",
    });
    expect(before["NamespaceFinalizersRemaining"]).toMatchObject({
      message:
        "Some content in the namespace has finalizers remaining: ex.io/x in 2 resource instances, ex.io/y in 1 resource instances",
    });
    expect(after["NamespaceContentRemaining"]).toEqual({
      ...before["NamespaceContentRemaining"],
      message: "Some resources are remaining: configmaps. has 1 resource instances",
    });
    await ok("PATCH", `${CONFIG_MAPS}/two`, { metadata: { finalizers: null } }, MERGE);
    expect(await statusOf(NAMESPACE)).toBe(404);
  });

  test("that somebody else has a finalizer on is emptied and stays until that is gone", async () => {
    const { ok, statusOf } = await givenEngine();
    await ok("PATCH", NAMESPACE, { metadata: { finalizers: ["ex.io/mine"] } }, MERGE);
    await ok("POST", CONFIG_MAPS, { metadata: { name: "a" } });

    await ok("DELETE", NAMESPACE);

    expect([await statusOf(`${CONFIG_MAPS}/a`), await statusOf(NAMESPACE)]).toEqual([404, 200]);
    await ok("PATCH", NAMESPACE, { metadata: { finalizers: null } }, MERGE);
    expect(await statusOf(NAMESPACE)).toBe(404);
  });

  test("whose deletion was cut short by the end of the process is finished by the next", async () => {
    const { ok, send, stop, start, statusOf, store } = await givenEngine();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "a" } });
    await stop();
    // As a process leaves it that was killed right after the namespace was marked.
    const key = { resource: "namespaces", namespace: "", name: "t" };
    const stored = store.get(key)!;
    const object = JSON.parse(stored.text);
    object.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    object.status = { phase: "Terminating" };
    await store.update(key, () => JSON.stringify(object), { expected: stored.revision });
    expect((await send("GET", NAMESPACE)).status).toBe(200);

    start();

    expect([await statusOf(`${CONFIG_MAPS}/a`), await statusOf(NAMESPACE)]).toEqual([404, 404]);
  });

  test("takes along what was on its way into it when it was deleted", async () => {
    const { statusOf, createLate } = await givenTerminating();

    await createLate();

    expect(await statusOf(`${CONFIG_MAPS}/late`)).toBe(404);
  });

  test("whose content cannot be deleted says why, and is deleted once it can", async () => {
    const disk = { isFull: true };
    const { ok, createLate, scheduler, statusOf } = await givenTerminating(disk);
    const failure = async () =>
      ((await ok("GET", NAMESPACE)).status["conditions"] as Conditions).find(
        ({ type }) => type === "NamespaceDeletionContentFailure",
      );

    await createLate();
    expect(await failure()).toMatchObject({
      status: "True",
      message: expect.stringContaining("no space left"),
    });
    disk.isFull = false;
    await scheduler.runFor(1_000);

    expect(await statusOf(`${CONFIG_MAPS}/late`)).toBe(404);
    expect(await failure()).toMatchObject({ status: "False" });
  });

  test("keeps everything else while a pod is still there", async () => {
    const { ok, send, settle, statusOf } = await givenEngine();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "settings" } });
    await ok("POST", PODS, { ...pod("p"), metadata: { name: "p", finalizers: ["ex.io/x"] } });

    await ok("DELETE", NAMESPACE);
    await settle();
    const meanwhile = await statusOf(`${CONFIG_MAPS}/settings`);
    await send("PATCH", `${PODS}/p`, { metadata: { finalizers: null } }, MERGE);
    await send("DELETE", `${PODS}/p`, { gracePeriodSeconds: 0 });
    await settle();

    expect(meanwhile).toBe(200);
    expect([await statusOf(`${CONFIG_MAPS}/settings`), await statusOf(NAMESPACE)]).toEqual([404, 404]);
  });

  test("leaves nothing behind of a kind that nobody told it of", async () => {
    const { ok, store, clock } = await givenServer();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "unseen" } });
    await ok("DELETE", NAMESPACE);
    const random = createSeededRandom("namespace");
    const marks = { mark: () => undefined, markAfter: () => undefined };

    await createNamespaceController({ store, clock, random }, marks).reconcile("t");

    expect([...store.scan({ resource: "configmaps", namespace: "t" })]).toEqual([]);
    expect(store.get({ resource: "namespaces", namespace: "", name: "t" })).toBeUndefined();
  });

  test("of two hundred objects with finalizers is counted once a second, not once a release", async () => {
    let scans = 0;
    const { ok, store, send, scheduler, statusOf } = await givenEngine({
      wrapStore: (inner) =>
        new Proxy(inner, {
          get(target, name) {
            const value: unknown = Reflect.get(target, name, target);
            if (typeof value !== "function") return value;
            if (name === "scan") scans++;
            return value.bind(target) as unknown;
          },
        }),
    });
    for (let count = 0; count < 200; count++) {
      await send("POST", CONFIG_MAPS, { metadata: { name: `c${count}`, finalizers: ["ex.io/x"] } });
    }
    await ok("DELETE", NAMESPACE);
    scans = 0;

    for (const { key } of [...store.scan({ resource: "configmaps", namespace: "t" })]) {
      await ok("PATCH", `${CONFIG_MAPS}/${key.name}`, { metadata: { finalizers: null } }, MERGE);
      await scheduler.runFor(25);
    }

    expect(await statusOf(NAMESPACE)).toBe(404);
    // 5 s of releases: some six looks, each of two scans of the one kind there is, and in the end of every kind.
    // One look a release would be 400 scans, and one of every kind at every look the same again.
    expect(scans).toBeLessThan(100);
  });
});
