import { describe, expect, test } from "vitest";
import { givenEngine, MERGE, pod, PODS } from "./stage.testing.ts";
import { isOutOfService, planNodePods, QUARANTINE_MS, surplus } from "./pod-gc-plan.ts";

const NODES = "/api/v1/nodes";
const STATUS = { status: { phase: "Running" } };
const OUT_OF_SERVICE = {
  spec: { taints: [{ key: "node.kubernetes.io/out-of-service", effect: "NoExecute" }] },
};

function ready(status: "True" | "False" | "Unknown") {
  return { status: { conditions: [{ type: "Ready", status }] } };
}

/** A running pod `p` on node `n`. */
async function givenRunningPod(members: object = {}) {
  const engine = await givenEngine();
  const { ok, scheduler, settle, statusOf } = engine;
  await ok("POST", NODES, { metadata: { name: "n" } });
  await ok("POST", PODS, { ...pod("p"), ...members });
  await ok("PATCH", `${PODS}/p/status`, STATUS, MERGE);
  return {
    ...engine,
    /** The status of the pod after so long. */
    after: async (ms: number) => {
      await scheduler.runFor(ms);
      await settle();
      return statusOf(`${PODS}/p`);
    },
  };
}

describe("the pods of a Node that is deleted", () => {
  test("end after the quarantine, shown as failed by what took them first", async () => {
    const { ok, watch, after } = await givenRunningPod();
    const watching = await watch(`${PODS}?watch=1`);
    await ok("DELETE", `${NODES}/n`);

    expect(await after(QUARANTINE_MS - 1)).toBe(200);
    expect(await after(1)).toBe(404);

    const [, failed, gone] = await watching.events();
    expect([failed?.type, gone?.type]).toEqual(["MODIFIED", "DELETED"]);
    expect(failed?.object.status).toMatchObject({
      phase: "Failed",
      conditions: [{ type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC" }],
    });
  });

  test("stay if it comes back in time", async () => {
    const { ok, after } = await givenRunningPod();
    await ok("DELETE", `${NODES}/n`);
    expect(await after(QUARANTINE_MS - 1)).toBe(200);

    await ok("POST", NODES, { metadata: { name: "n" } });

    expect(await after(10 * QUARANTINE_MS)).toBe(200);
  });

  test("stay for a whole quarantine after it was back for a moment", async () => {
    const { ok, after } = await givenRunningPod();
    await ok("DELETE", `${NODES}/n`);
    await after(QUARANTINE_MS - 1_000);

    await ok("POST", NODES, { metadata: { name: "n" } });
    await ok("DELETE", `${NODES}/n`);

    expect(await after(QUARANTINE_MS - 1)).toBe(200);
    expect(await after(1)).toBe(404);
  });

  test("stay for a whole quarantine after a restart, which knows nothing of the time before", async () => {
    const { ok, after, stop, start } = await givenRunningPod();
    await ok("DELETE", `${NODES}/n`);
    await after(QUARANTINE_MS - 1);

    await stop();
    start();

    expect(await after(QUARANTINE_MS - 1)).toBe(200);
    expect(await after(1)).toBe(404);
  });

  test("end also when they are on their way already, or bound to a node that never was", async () => {
    const { ok, after, statusOf } = await givenRunningPod();
    await ok("DELETE", `${PODS}/p`);
    await ok("DELETE", `${NODES}/n`);
    await ok("POST", PODS, pod("q", { nodeName: "never" }));
    await ok("POST", PODS, pod("unbound", { nodeName: undefined }));

    expect(await after(QUARANTINE_MS)).toBe(404);
    expect(await statusOf(`${PODS}/q`)).toBe(404);
    expect(await statusOf(`${PODS}/unbound`)).toBe(200);
  });

  test("with a finalizer are left to whoever set it, without a word more", async () => {
    const { ok, after, store } = await givenRunningPod({ metadata: { name: "p", finalizers: ["a.io/b"] } });
    await ok("DELETE", `${NODES}/n`);
    expect(await after(QUARANTINE_MS)).toBe(200);

    const { revision } = store;
    expect(await after(10 * QUARANTINE_MS)).toBe(200);
    expect(store.revision).toBe(revision);

    await ok("PATCH", `${PODS}/p`, { metadata: { finalizers: null } }, MERGE);
    expect(await after(0)).toBe(404);
  });

  test("70 of them end, and not one of another node", async () => {
    const { ok, after, statusOf } = await givenRunningPod();
    await ok("POST", NODES, { metadata: { name: "other" } });
    await ok("POST", PODS, pod("elsewhere", { nodeName: "other" }));
    for (let index = 0; index < 70; index++) await ok("POST", PODS, pod(`p${index}`));
    await ok("DELETE", `${NODES}/n`);

    expect(await after(QUARANTINE_MS)).toBe(404);
    expect((await ok("GET", PODS)).items.map(({ metadata }) => metadata.name)).toEqual(["elsewhere"]);
    expect(await statusOf(`${PODS}/elsewhere`)).toBe(200);
  });
});

describe("a pod that is being deleted", () => {
  for (const [what, node, gone] of [
    ["on a node that is out of service and not ready", { ...OUT_OF_SERVICE, ...ready("Unknown") }, true],
    ["on a node that is not ready", ready("False"), false],
    ["on a node that says it is ready, whatever its taint", { ...OUT_OF_SERVICE, ...ready("True") }, false],
  ] as const) {
    test(`${what} ${gone ? "ends" : "waits for the node"}`, async () => {
      const { ok, after } = await givenRunningPod();
      await ok("DELETE", `${PODS}/p`);

      await ok("PATCH", `${NODES}/n/status`, { status: node.status }, MERGE);
      if ("spec" in node) await ok("PATCH", `${NODES}/n`, { spec: node.spec }, MERGE);

      expect(await after(10 * QUARANTINE_MS)).toBe(gone ? 404 : 200);
    });
  }

  test("ends when it is deleted only after its node was declared out of service; others there stay", async () => {
    const { ok, after, statusOf } = await givenRunningPod();
    await ok("POST", PODS, pod("other"));
    await ok("PATCH", `${NODES}/n`, OUT_OF_SERVICE, MERGE);
    expect(await after(QUARANTINE_MS)).toBe(200);

    await ok("DELETE", `${PODS}/p`);

    expect(await after(0)).toBe(404);
    expect(await statusOf(`${PODS}/other`)).toBe(200);
  });
});

describe("the plan", () => {
  const taint = { key: "node.kubernetes.io/out-of-service" };

  test.each([
    [undefined, undefined, "wait"],
    [undefined, 0, "wait"],
    [undefined, 39_999, "wait"],
    [undefined, 40_000, "end"],
    [{}, 1_000_000, "keep"],
    [{ spec: { taints: [taint] } }, undefined, "end"],
    [{ spec: { taints: [taint] }, ...ready("True") }, undefined, "keep"],
  ])("node %j missing for %s ms: %s", (node, missingMs, kind) => {
    const nowMs = 5_000_000;
    const missingSinceMs = missingMs === undefined ? undefined : nowMs - missingMs;

    expect(planNodePods(node as never, { missingSinceMs, nowMs }).kind).toBe(kind);
  });

  test("a node without conditions is not ready", () => {
    expect(isOutOfService({ spec: { taints: [taint as never] } })).toBe(true);
  });

  test("of too many ended pods the evicted go first, then the oldest, then by name", () => {
    const ended = (name: string, creationTimestamp: string, reason?: string) => ({
      metadata: { name, creationTimestamp },
      status: { phase: "Failed", ...(reason === undefined ? {} : { reason }) },
    });
    const pods = [
      ended("new", "2026-01-03T00:00:00Z"),
      ended("b", "2026-01-01T00:00:00Z"),
      ended("a", "2026-01-01T00:00:00Z"),
      ended("evicted", "2026-01-02T00:00:00Z", "Evicted"),
    ];

    const names = (max: number) => surplus(pods, max).map(({ metadata }) => metadata.name);
    expect([names(4), names(3), names(1)]).toEqual([[], ["evicted"], ["evicted", "a", "b"]]);
  });
});
