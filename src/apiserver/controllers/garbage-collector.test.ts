import { describe, expect, test } from "vitest";
import type { Answer } from "../scenario.testing.ts";
import { claim, CLAIMS, CONFIG_MAPS, givenEngine, MERGE, ownedBy, pod, PODS } from "./stage.testing.ts";

type Engine = Awaited<ReturnType<typeof givenEngine>>;

const FOREGROUND = { propagationPolicy: "Foreground" };
const ORPHAN = { propagationPolicy: "Orphan" };

function configMap({ ok }: Engine, name: string, metadata: object = {}): Promise<Answer> {
  return ok("POST", CONFIG_MAPS, { metadata: { name, ...metadata } });
}

/** An owner and its dependant; `extra` is part of the reference. */
async function givenPair(extra: object = {}, dependant: object = {}) {
  const engine = await givenEngine();
  const owner = await configMap(engine, "owner");
  await configMap(engine, "dependant", { ownerReferences: [ownedBy(owner, extra)], ...dependant });
  return { ...engine, owner };
}

describe("in the background", () => {
  test("a dependant goes after its owner", async () => {
    const { ok, statusOf } = await givenPair();
    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(200);

    await ok("DELETE", `${CONFIG_MAPS}/owner`);

    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(404);
  });

  test("a chain goes to its end", async () => {
    const engine = await givenEngine();
    let owner = await configMap(engine, "c0");
    for (let count = 1; count < 20; count++) {
      owner = await configMap(engine, `c${count}`, { ownerReferences: [ownedBy(owner)] });
    }

    await engine.ok("DELETE", `${CONFIG_MAPS}/c0`);

    expect([...engine.store.scan({ resource: "configmaps", namespace: "t" })]).toEqual([]);
  });

  test("a dependant that names an owner who never was is collected", async () => {
    const engine = await givenEngine();
    const ghost = {
      apiVersion: "v1",
      kind: "ConfigMap",
      name: "ghost",
      uid: "11111111-1111-1111-1111-111111111111",
    };

    await configMap(engine, "dangling", { ownerReferences: [ghost] });

    expect(await engine.statusOf(`${CONFIG_MAPS}/dangling`)).toBe(404);
  });

  test("an owner's name is not enough: one of the same name with another uid keeps nobody", async () => {
    const { ok, statusOf, stop, start } = await givenPair();
    await stop();
    await ok("DELETE", `${CONFIG_MAPS}/owner`);
    await ok("POST", CONFIG_MAPS, { metadata: { name: "owner" } });

    start();

    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(404);
    expect(await statusOf(`${CONFIG_MAPS}/owner`)).toBe(200);
  });

  test("one living owner keeps its dependant, which forgets the others", async () => {
    const engine = await givenEngine();
    const [a, b] = [await configMap(engine, "a"), await configMap(engine, "b")];
    await configMap(engine, "shared", { ownerReferences: [ownedBy(a), ownedBy(b)] });

    await engine.ok("DELETE", `${CONFIG_MAPS}/a`);

    const { metadata } = await engine.ok("GET", `${CONFIG_MAPS}/shared`);
    expect(metadata.ownerReferences?.map(({ name }) => name)).toEqual(["b"]);
    await engine.ok("DELETE", `${CONFIG_MAPS}/b`);
    expect(await engine.statusOf(`${CONFIG_MAPS}/shared`)).toBe(404);
  });

  test("an owner that waits for a finalizer is still there", async () => {
    const engine = await givenEngine();
    const owner = await configMap(engine, "owner", { finalizers: ["ex.io/x"] });
    await configMap(engine, "dependant", { ownerReferences: [ownedBy(owner)] });

    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`);

    expect(await engine.statusOf(`${CONFIG_MAPS}/dependant`)).toBe(200);
    await engine.ok("PATCH", `${CONFIG_MAPS}/owner`, { metadata: { finalizers: null } }, MERGE);
    expect(await engine.statusOf(`${CONFIG_MAPS}/dependant`)).toBe(404);
  });

  test("a dependant that gets an owner later is collected with it", async () => {
    const engine = await givenEngine();
    const owner = await configMap(engine, "owner");
    await configMap(engine, "adopted");
    const ownerReferences = [ownedBy(owner)];
    await engine.ok("PATCH", `${CONFIG_MAPS}/adopted`, { metadata: { ownerReferences } }, MERGE);

    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`);

    expect(await engine.statusOf(`${CONFIG_MAPS}/adopted`)).toBe(404);
  });

  test("the claim of a pod goes with it", async () => {
    const { ok, statusOf } = await givenEngine();
    const owner = await ok(
      "POST",
      PODS,
      pod("p", {
        volumes: [
          {
            name: "v",
            ephemeral: {
              volumeClaimTemplate: {
                spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
              },
            },
          },
        ],
      }),
    );
    await ok("POST", CLAIMS, claim("p-v", { ownerReferences: [ownedBy(owner, { controller: true })] }));

    await ok("DELETE", `${PODS}/p`, { gracePeriodSeconds: 0 });

    expect(await statusOf(`${CLAIMS}/p-v`)).toBe(404);
  });
});

describe("owners nobody can know keep what they own:", () => {
  test("a kind that is not served here", async () => {
    const engine = await givenEngine();
    const foreign = {
      apiVersion: "ex.io/v1",
      kind: "Widget",
      name: "w",
      uid: "22222222-2222-2222-2222-222222222222",
    };
    const owner = await configMap(engine, "owner");

    await configMap(engine, "kept", { ownerReferences: [foreign] });
    await configMap(engine, "kept-too", { ownerReferences: [foreign, ownedBy(owner)] });
    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`);

    expect(await engine.statusOf(`${CONFIG_MAPS}/kept`)).toBe(200);
    const { metadata } = await engine.ok("GET", `${CONFIG_MAPS}/kept-too`);
    expect(metadata.ownerReferences).toEqual([foreign]);
  });

  test("a namespaced owner of something that lies in no namespace", async () => {
    const engine = await givenEngine();
    const owner = await configMap(engine, "owner");
    await engine.ok("POST", "/api/v1/nodes", { metadata: { name: "n", ownerReferences: [ownedBy(owner)] } });

    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`);

    expect(await engine.statusOf("/api/v1/nodes/n")).toBe(200);
  });
});

describe("where owners are looked for", () => {
  test("in the dependant's own namespace only", async () => {
    const engine = await givenEngine();
    const owner = await configMap(engine, "owner");
    await engine.ok("POST", "/api/v1/namespaces", { metadata: { name: "other" } });

    const elsewhere = "/api/v1/namespaces/other/configmaps";
    await engine.ok("POST", elsewhere, { metadata: { name: "far", ownerReferences: [ownedBy(owner)] } });

    expect(await engine.statusOf(`${elsewhere}/far`)).toBe(404);
    expect(await engine.statusOf(`${CONFIG_MAPS}/owner`)).toBe(200);
  });

  test("at the cluster's scope for kinds that lie there", async () => {
    const engine = await givenEngine();
    const node = await engine.ok("POST", "/api/v1/nodes", { metadata: { name: "n" } });
    await configMap(engine, "of-node", { ownerReferences: [ownedBy(node)] });
    expect(await engine.statusOf(`${CONFIG_MAPS}/of-node`)).toBe(200);

    await engine.ok("DELETE", "/api/v1/nodes/n");

    expect(await engine.statusOf(`${CONFIG_MAPS}/of-node`)).toBe(404);
  });

  test("a protected namespace is never collected", async () => {
    const engine = await givenEngine();
    const ghost = {
      apiVersion: "v1",
      kind: "Node",
      name: "ghost",
      uid: "33333333-3333-3333-3333-333333333333",
    };

    await engine.ok("PATCH", "/api/v1/namespaces/default", { metadata: { ownerReferences: [ghost] } }, MERGE);

    expect((await engine.ok("GET", "/api/v1/namespaces/default")).status).toEqual({ phase: "Active" });
  });
});

describe("in the foreground", () => {
  test("an owner waits for a dependant that blocks it, and goes with it", async () => {
    const { ok, statusOf } = await givenPair({ blockOwnerDeletion: true }, { finalizers: ["ex.io/x"] });

    const answer = await ok("DELETE", `${CONFIG_MAPS}/owner`, FOREGROUND);

    expect(answer.metadata.finalizers).toEqual(["foregroundDeletion"]);
    expect((await ok("GET", `${CONFIG_MAPS}/dependant`)).metadata.deletionTimestamp).toBeDefined();
    expect(await statusOf(`${CONFIG_MAPS}/owner`)).toBe(200);
    await ok("PATCH", `${CONFIG_MAPS}/dependant`, { metadata: { finalizers: null } }, MERGE);
    expect([await statusOf(`${CONFIG_MAPS}/dependant`), await statusOf(`${CONFIG_MAPS}/owner`)]).toEqual([
      404, 404,
    ]);
  });

  test("an owner does not wait for a dependant that does not block it, which goes all the same", async () => {
    const { ok, statusOf } = await givenPair({}, { finalizers: ["ex.io/x"] });

    await ok("DELETE", `${CONFIG_MAPS}/owner`, FOREGROUND);

    expect(await statusOf(`${CONFIG_MAPS}/owner`)).toBe(404);
    expect((await ok("GET", `${CONFIG_MAPS}/dependant`)).metadata.deletionTimestamp).toBeDefined();
  });

  test("a dependant with another, living owner stays and holds up nobody", async () => {
    const engine = await givenEngine();
    const [a, b] = [await configMap(engine, "a"), await configMap(engine, "b")];
    const blocking = { blockOwnerDeletion: true };
    await configMap(engine, "shared", { ownerReferences: [ownedBy(a, blocking), ownedBy(b, blocking)] });

    await engine.ok("DELETE", `${CONFIG_MAPS}/a`, FOREGROUND);

    expect(await engine.statusOf(`${CONFIG_MAPS}/a`)).toBe(404);
    const { metadata } = await engine.ok("GET", `${CONFIG_MAPS}/shared`);
    expect(metadata.ownerReferences?.map(({ name }) => name)).toEqual(["b"]);
  });

  test("grandchildren go before children, children before the owner", async () => {
    const engine = await givenEngine();
    const blocking = { blockOwnerDeletion: true };
    const owner = await configMap(engine, "owner");
    const child = await configMap(engine, "child", { ownerReferences: [ownedBy(owner, blocking)] });
    await configMap(engine, "grandchild", { ownerReferences: [ownedBy(child, blocking)] });
    const watch = await engine.watch(`${CONFIG_MAPS}?watch=1`);

    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`, FOREGROUND);

    const gone = (await watch.events()).filter(({ type }) => type === "DELETED");
    expect(gone.map(({ object }) => object.metadata.name)).toEqual(["grandchild", "child", "owner"]);
    watch.hangUp();
  });

  for (const together of [false, true]) {
    test(`two that own each other go, ${together ? "also when both are deleted at once" : "whichever is deleted"}`, async () => {
      const engine = await givenEngine();
      const blocking = { blockOwnerDeletion: true };
      const a = await configMap(engine, "a");
      const b = await configMap(engine, "b", { ownerReferences: [ownedBy(a, blocking)] });
      const ownerReferences = [ownedBy(b, blocking)];
      await engine.ok("PATCH", `${CONFIG_MAPS}/a`, { metadata: { ownerReferences } }, MERGE);

      const names = together ? ["a", "b"] : ["a"];
      await Promise.all(names.map((name) => engine.send("DELETE", `${CONFIG_MAPS}/${name}`, FOREGROUND)));

      expect([await engine.statusOf(`${CONFIG_MAPS}/a`), await engine.statusOf(`${CONFIG_MAPS}/b`)]).toEqual([
        404, 404,
      ]);
    });
  }

  test("one that owns itself goes", async () => {
    const engine = await givenEngine();
    const self = await configMap(engine, "self");
    const ownerReferences = [ownedBy(self, { blockOwnerDeletion: true })];
    await engine.ok("PATCH", `${CONFIG_MAPS}/self`, { metadata: { ownerReferences } }, MERGE);
    expect(await engine.statusOf(`${CONFIG_MAPS}/self`)).toBe(200);

    await engine.ok("DELETE", `${CONFIG_MAPS}/self`, FOREGROUND);

    expect(await engine.statusOf(`${CONFIG_MAPS}/self`)).toBe(404);
  });
});

describe("orphaned", () => {
  test("a dependant stays behind without the reference, and the owner goes", async () => {
    const { ok, statusOf } = await givenPair({ blockOwnerDeletion: true });

    const answer = await ok("DELETE", `${CONFIG_MAPS}/owner`, ORPHAN);

    expect(answer.metadata.finalizers).toEqual(["orphan"]);
    expect(await statusOf(`${CONFIG_MAPS}/owner`)).toBe(404);
    expect((await ok("GET", `${CONFIG_MAPS}/dependant`)).metadata).not.toHaveProperty("ownerReferences");
  });

  test("hundreds of dependants all stay", async () => {
    const engine = await givenEngine();
    const owner = await configMap(engine, "owner");
    for (let count = 0; count < 200; count++) {
      await engine.send("POST", CONFIG_MAPS, {
        metadata: { name: `d${count}`, ownerReferences: [ownedBy(owner)] },
      });
    }

    await engine.ok("DELETE", `${CONFIG_MAPS}/owner`, ORPHAN);

    const names = Array.from(
      engine.store.scan({ resource: "configmaps", namespace: "t" }),
      ({ key }) => key.name,
    );
    expect(names).toHaveLength(200);
    expect(names).not.toContain("owner");
  });

  test("what a killed process left half orphaned is finished by the next", async () => {
    const { ok, stop, start, statusOf } = await givenPair();
    await stop();
    await ok("DELETE", `${CONFIG_MAPS}/owner`, ORPHAN);

    start();

    expect(await statusOf(`${CONFIG_MAPS}/owner`)).toBe(404);
    expect(await statusOf(`${CONFIG_MAPS}/dependant`)).toBe(200);
  });
});
