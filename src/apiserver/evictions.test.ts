import { describe, expect, test } from "vitest";
import { givenServer } from "./scenario.testing.ts";

const PODS = "/api/v1/namespaces/t/pods";
const BUDGETS = "/apis/policy/v1/namespaces/t/poddisruptionbudgets";
const MERGE = { type: "application/merge-patch+json" };

/** Running pods of one app, and a budget that allows so many disruptions. */
async function given(allowed: number, status: object = {}) {
  const server = await givenServer();
  for (const name of ["a", "b", "c"]) {
    await server.ok("POST", PODS, {
      metadata: { name, labels: { app: "web" } },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    await server.ok(
      "PATCH",
      `${PODS}/${name}/status`,
      { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
      MERGE,
    );
  }
  const selector = { matchLabels: { app: "web" } };
  await server.ok("POST", BUDGETS, { metadata: { name: "budget" }, spec: { minAvailable: 2, selector } });
  const counted = { observedGeneration: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3 };
  await server.ok(
    "PATCH",
    `${BUDGETS}/budget/status`,
    { status: { ...counted, disruptionsAllowed: allowed, ...status } },
    MERGE,
  );
  const evict = (name: string) => server.send("POST", `${PODS}/${name}/eviction`, { metadata: { name } });
  return { ...server, evict };
}

describe("an eviction", () => {
  test("takes one disruption off the budget, which says for whom", async () => {
    const { evict, ok } = await given(1);

    expect((await evict("a")).status).toBe(201);

    const budget = await ok("GET", `${BUDGETS}/budget`);
    expect(budget["status"]).toMatchObject({
      disruptionsAllowed: 0,
      disruptedPods: { a: expect.any(String) },
    });
  });

  test("is refused by a budget that allows none, with the cause that clients wait on", async () => {
    const { evict, ok } = await given(0, { currentHealthy: 2 });

    const { status, body } = await evict("a");

    expect([status, body.reason, body.message]).toEqual([
      429,
      "TooManyRequests",
      "Cannot evict pod as it would violate the pod's disruption budget.",
    ]);
    expect(body.details.causes).toEqual([
      {
        reason: "DisruptionBudget",
        message: "The disruption budget budget needs 2 healthy pods and has 2 currently",
      },
    ]);
    expect((await ok("GET", `${PODS}/a`)).metadata.deletionTimestamp).toBeUndefined();
  });

  test("waits for a budget that nobody has worked out since it changed", async () => {
    const { evict } = await given(1, { observedGeneration: 0 });

    expect((await evict("a")).status).toBe(429);
  });

  test("of three at once on a budget for one, one gets through", async () => {
    const { evict } = await given(1);

    const statuses = (await Promise.all(["a", "b", "c"].map(evict))).map(({ status }) => status);

    expect(statuses.sort()).toEqual([201, 429, 429]);
  });

  test("of a pod that serves nobody costs nothing", async () => {
    const { evict, ok } = await given(0);
    await ok("PATCH", `${PODS}/a/status`, { status: { phase: "Succeeded" } }, MERGE);
    await ok(
      "PATCH",
      `${PODS}/b/status`,
      { status: { conditions: [{ type: "Ready", status: "False" }] } },
      MERGE,
    );

    // Enough others are healthy for b, which is not.
    expect([(await evict("a")).status, (await evict("b")).status]).toEqual([201, 201]);
  });

  test("of a pod with two budgets is a fault that says so", async () => {
    const { evict, ok } = await given(1);
    await ok("POST", BUDGETS, { metadata: { name: "second" }, spec: { selector: {} } });

    const { status, body } = await evict("a");

    expect([status, body.message]).toEqual([
      500,
      expect.stringContaining("more than one PodDisruptionBudget"),
    ]);
  });
});
