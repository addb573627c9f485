import { describe, expect, test } from "vitest";
import { givenEngine } from "./controllers/stage.testing.ts";
import { givenServer } from "./scenario.testing.ts";

const CONFIG_MAPS = "/api/v1/namespaces/t/configmaps";
const PODS = "/api/v1/namespaces/t/pods";
const MERGE = { type: "application/merge-patch+json" };

async function givenConfigMap(metadata: object = {}) {
  const server = await givenServer();
  const stored = await server.ok("POST", CONFIG_MAPS, { metadata: { name: "a", ...metadata } });
  return { ...server, stored };
}

describe("what is answered", () => {
  test("a ConfigMap answers with a Status and its uid, a StorageClass with itself", async () => {
    const { ok, stored } = await givenConfigMap();
    const classes = "/apis/storage.k8s.io/v1/storageclasses";
    const storageClass = await ok("POST", classes, { metadata: { name: "s" }, provisioner: "x" });

    expect(await ok("DELETE", `${CONFIG_MAPS}/a`)).toEqual({
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Success",
      details: { name: "a", kind: "configmaps", uid: stored.metadata.uid },
    });
    const deleted = await ok("DELETE", `${classes}/s`);
    const { resourceVersion } = deleted.metadata;
    expect(deleted).toEqual({ ...storageClass, metadata: { ...storageClass.metadata, resourceVersion } });
    expect(Number(resourceVersion)).toBeGreaterThan(Number(storageClass.metadata.resourceVersion));
  });

  test("what is gone is 404", async () => {
    const { ok, send } = await givenConfigMap();
    await ok("DELETE", `${CONFIG_MAPS}/a`);

    const { status, body } = await send("DELETE", `${CONFIG_MAPS}/a`);

    expect([status, body.message]).toEqual([404, 'configmaps "a" not found']);
  });

  test("a dry run deletes nothing", async () => {
    const { ok, store } = await givenConfigMap();
    const before = store.revision;

    await ok("DELETE", `${CONFIG_MAPS}/a?dryRun=All`);
    await ok("DELETE", `${CONFIG_MAPS}/a`, { dryRun: ["All"] });

    expect(store.revision).toBe(before);
  });
});

describe("finalizers", () => {
  test("the object stays, marked, until the last one is taken away", async () => {
    const { ok, send } = await givenConfigMap({ finalizers: ["ex.io/x"] });

    const marked = await ok("DELETE", `${CONFIG_MAPS}/a`);
    const again = await ok("DELETE", `${CONFIG_MAPS}/a`);
    expect(marked.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, finalizers: ["ex.io/x"] });
    expect(marked.metadata.deletionTimestamp).toBeDefined();
    expect(again).toEqual(marked);

    const released = await send("PATCH", `${CONFIG_MAPS}/a`, { metadata: { finalizers: null } }, MERGE);
    expect([released.status, released.body.metadata.resourceVersion]).toEqual([
      200,
      marked.metadata.resourceVersion,
    ]);
    expect((await send("GET", `${CONFIG_MAPS}/a`)).status).toBe(404);
  });

  test("while it is being deleted it can be changed, but no finalizer can be added and the mark stays", async () => {
    const { ok, send } = await givenConfigMap({ finalizers: ["ex.io/x"] });
    const marked = await ok("DELETE", `${CONFIG_MAPS}/a`);

    const added = await send(
      "PATCH",
      `${CONFIG_MAPS}/a`,
      { metadata: { finalizers: ["ex.io/x", "ex.io/y"] } },
      MERGE,
    );
    const changed = await ok(
      "PATCH",
      `${CONFIG_MAPS}/a`,
      { data: { k: "v" }, metadata: { deletionTimestamp: null } },
      MERGE,
    );

    expect([added.status, added.body.details.causes[0]?.field]).toEqual([422, "metadata.finalizers"]);
    expect(added.body.message).toContain('[]string{"ex.io/y"}');
    expect(changed.metadata.deletionTimestamp).toBe(marked.metadata.deletionTimestamp);
    expect(changed.data).toEqual({ k: "v" });
  });

  test("its name is not free while it is being deleted", async () => {
    const { ok, send } = await givenConfigMap({ finalizers: ["ex.io/x"] });
    await ok("DELETE", `${CONFIG_MAPS}/a`);

    const { status, body } = await send("POST", CONFIG_MAPS, { metadata: { name: "a" } });

    expect([status, body.message]).toEqual([409, 'object is being deleted: configmaps "a" already exists']);
  });
});

describe("options", () => {
  test("a precondition that does not hold is 409 and nothing happens; one that holds lets it go", async () => {
    const { send, stored } = await givenConfigMap();
    const { uid, resourceVersion } = stored.metadata;

    const wrongUid = await send("DELETE", `${CONFIG_MAPS}/a`, { preconditions: { uid: "other" } });
    const wrongVersion = await send("DELETE", `${CONFIG_MAPS}/a`, {
      preconditions: { resourceVersion: "1" },
    });
    const right = await send("DELETE", `${CONFIG_MAPS}/a`, { preconditions: { uid, resourceVersion } });

    expect([wrongUid.status, wrongVersion.status, right.status]).toEqual([409, 409, 200]);
    expect(wrongUid.body.details).toEqual({ name: "a", kind: "ConfigMap" });
  });

  test("Foreground and Orphan leave their finalizer, Background takes it away again", async () => {
    const { ok } = await givenConfigMap();

    const foreground = await ok("DELETE", `${CONFIG_MAPS}/a`, { propagationPolicy: "Foreground" });
    const orphan = await ok("DELETE", `${CONFIG_MAPS}/a?propagationPolicy=Orphan`);
    const background = await ok("DELETE", `${CONFIG_MAPS}/a`, { propagationPolicy: "Background" });

    expect([foreground, orphan].map(({ metadata }) => metadata.finalizers)).toEqual([
      ["foregroundDeletion"],
      ["orphan"],
    ]);
    expect(background.kind).toBe("Status");
  });

  for (const [body, status] of [
    [{ propagationPolicy: "X" }, 422],
    [{ propagationPolicy: "Foreground", orphanDependents: true }, 422],
    [{ gracePeriodSeconds: "soon" }, 400],
    ["{bad", 400],
  ] as const) {
    test(`${JSON.stringify(body)} is ${status}`, async () => {
      const { send, ok } = await givenConfigMap();

      expect((await send("DELETE", `${CONFIG_MAPS}/a`, body)).status).toBe(status);
      await ok("GET", `${CONFIG_MAPS}/a`);
    });
  }
});

describe("pods", () => {
  async function givenPod(spec: object = { nodeName: "n1" }) {
    const server = await givenServer();
    await server.ok("POST", PODS, {
      metadata: { name: "p" },
      spec: { containers: [{ name: "c", image: "i" }], ...spec },
    });
    const remove = async (options?: object) => (await server.ok("DELETE", `${PODS}/p`, options)).metadata;
    const secondsLeft = (metadata: { deletionTimestamp?: string }) =>
      (Date.parse(metadata.deletionTimestamp ?? "") - server.clock.wall().getTime()) / 1_000;
    return { ...server, remove, secondsLeft };
  }

  test("a running pod gets 30 s; 10 shortens that, 60 and a repeat do not change it, 0 ends it", async () => {
    const { remove, secondsLeft, send } = await givenPod();

    const first = await remove();
    const repeated = await remove();
    const longer = await remove({ gracePeriodSeconds: 60 });
    const shorter = await remove({ gracePeriodSeconds: 10 });
    const now = await remove({ gracePeriodSeconds: 0 });

    expect([secondsLeft(first), first.deletionGracePeriodSeconds, first.generation]).toEqual([30, 30, 2]);
    expect([repeated, longer]).toEqual([first, first]);
    expect([secondsLeft(shorter), shorter.deletionGracePeriodSeconds]).toEqual([10, 10]);
    expect(now.deletionGracePeriodSeconds).toBe(0);
    expect((await send("GET", `${PODS}/p`)).status).toBe(404);
  });

  test("a shorter period counts from the first request, but never ends in the past", async () => {
    const { remove, secondsLeft, scheduler } = await givenPod();
    await remove();
    await scheduler.runFor(20_000);

    const shorter = await remove({ gracePeriodSeconds: 10 });

    expect(secondsLeft(shorter)).toBe(0);
  });

  test("its own grace period counts where the request names none, and a negative one is a second", async () => {
    const own = await givenPod({ nodeName: "n1", terminationGracePeriodSeconds: 7 });
    const negative = await givenPod();

    expect((await own.remove()).deletionGracePeriodSeconds).toBe(7);
    expect((await negative.remove({ gracePeriodSeconds: -5 })).deletionGracePeriodSeconds).toBe(1);
  });

  test("a pod that no node runs is gone at once; so is one that has ended", async () => {
    const unscheduled = await givenPod({});
    const ended = await givenPod();
    await ended.ok("PATCH", `${PODS}/p/status`, { status: { phase: "Succeeded" } }, MERGE);

    await unscheduled.remove();
    await ended.remove();

    expect((await unscheduled.send("GET", `${PODS}/p`)).status).toBe(404);
    expect((await ended.send("GET", `${PODS}/p`)).status).toBe(404);
  });

  test("losing its last finalizer does not end a pod before its grace period", async () => {
    const { ok, remove } = await givenPod();
    await ok("PATCH", `${PODS}/p`, { metadata: { finalizers: ["ex.io/f"] } }, MERGE);
    await remove();

    await ok("PATCH", `${PODS}/p`, { metadata: { finalizers: null } }, MERGE);

    await ok("GET", `${PODS}/p`);
  });
});

describe("many at once", () => {
  test("a collection is deleted by selector and answered as it was", async () => {
    const { ok } = await givenServer();
    for (const [name, x] of [
      ["a", "y"],
      ["b", "y"],
      ["c", "n"],
    ] as const) {
      await ok("POST", CONFIG_MAPS, { metadata: { name, labels: { x } } });
    }

    const deleted = await ok("DELETE", `${CONFIG_MAPS}?labelSelector=x%3Dy`);

    expect(deleted.kind).toBe("ConfigMapList");
    expect(deleted.items.map(({ metadata }) => metadata.name)).toEqual(["a", "b"]);
    expect((await ok("GET", CONFIG_MAPS)).items.map(({ metadata }) => metadata.name)).toEqual(["c"]);
  });

  test("not across namespaces, and not namespaces themselves", async () => {
    const { send } = await givenServer();

    expect((await send("DELETE", "/api/v1/configmaps")).status).toBe(405);
    expect((await send("DELETE", "/api/v1/namespaces")).status).toBe(405);
  });
});

describe("namespaces", () => {
  const NAMESPACE = "/api/v1/namespaces/t";

  test("a DELETE marks it and leaves what is in it to a controller; nothing new comes in", async () => {
    const { ok, send } = await givenConfigMap();

    const terminating = await ok("DELETE", NAMESPACE);

    const refused = await send("POST", CONFIG_MAPS, { metadata: { name: "late" } });
    expect(terminating.status).toMatchObject({ phase: "Terminating" });
    expect([refused.status, refused.body.details.causes[0]?.reason]).toEqual([403, "NamespaceTerminating"]);
    expect((await send("GET", `${CONFIG_MAPS}/a`)).status).toBe(200);
    expect((await send("GET", NAMESPACE)).status).toBe(200);
  });

  test("with its controller it goes with the last object in it, and can be made again", async () => {
    const { ok, statusOf } = await givenEngine();
    await ok("POST", CONFIG_MAPS, { metadata: { name: "a", finalizers: ["ex.io/x"] } });

    await ok("DELETE", NAMESPACE);
    expect(await statusOf(NAMESPACE)).toBe(200);
    await ok("PATCH", `${CONFIG_MAPS}/a`, { metadata: { finalizers: null } }, MERGE);

    expect(await statusOf(NAMESPACE)).toBe(404);
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "t" } });
  });

  test("/finalize without finalizers removes one that is marked, in the same write, and no other", async () => {
    const { ok, send, watch } = await givenServer();
    const active = await ok("PUT", `${NAMESPACE}/finalize`, { metadata: { name: "t" }, spec: {} });
    const events = await watch("/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dt");
    expect(active.spec).toEqual({});

    await ok("DELETE", NAMESPACE);
    expect((await send("GET", NAMESPACE)).status).toBe(200);
    const finalized = await ok("PUT", `${NAMESPACE}/finalize`, { metadata: { name: "t" }, spec: {} });

    expect(finalized.metadata.deletionTimestamp).toBeDefined();
    expect((await send("GET", NAMESPACE)).status).toBe(404);
    expect((await events.events()).map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
  });

  test("the last finalizer, of its content or of somebody else, takes it along", async () => {
    for (const [first, second] of [
      ["content", "mine"],
      ["mine", "content"],
    ]) {
      const { ok, send } = await givenServer();
      const release: Readonly<Record<string, () => Promise<unknown>>> = {
        content: () => ok("PUT", `${NAMESPACE}/finalize`, { metadata: { name: "t" }, spec: {} }),
        mine: () => ok("PATCH", NAMESPACE, { metadata: { finalizers: [] } }, MERGE),
      };
      await ok("PATCH", NAMESPACE, { metadata: { finalizers: ["ex.io/x"] } }, MERGE);
      await ok("DELETE", NAMESPACE);

      await release[first ?? ""]?.();
      expect((await send("GET", NAMESPACE)).status).toBe(200);
      await release[second ?? ""]?.();

      expect((await send("GET", NAMESPACE)).status).toBe(404);
    }
  });

  test("the namespaces that every cluster has may not be deleted", async () => {
    const { send } = await givenServer();

    const { status, body } = await send("DELETE", "/api/v1/namespaces/kube-system");

    expect([status, body.message]).toEqual([
      403,
      'namespaces "kube-system" is forbidden: this namespace may not be deleted',
    ]);
  });
});
