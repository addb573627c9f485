import { describe, expect, test } from "vitest";
import { givenEngine, pod } from "./controllers/stage.testing.ts";
import { ACCOUNT_WAIT_MS, NAMESPACE_WAIT_MS } from "./prerequisites.ts";
import { givenServer } from "./scenario.testing.ts";

const APPLY = { type: "application/apply-patch+yaml" };

describe("a pod sent right after its namespace", () => {
  test("is created, 60 of 60", async () => {
    const { send, settle } = await givenEngine();
    const sent = Array.from({ length: 60 }, async (_, index) => {
      await send("POST", "/api/v1/namespaces", { metadata: { name: `n${index}` } });
      return send("POST", `/api/v1/namespaces/n${index}/pods`, pod("p"));
    });
    await settle();

    const answers = await Promise.all(sent);

    expect(answers.filter(({ status }) => status === 201)).toHaveLength(60);
    expect(answers[59]?.body.spec).toMatchObject({ serviceAccountName: "default" });
  });

  for (const [how, method, path, body, options] of [
    ["with a generated name", "POST", "pods", { ...pod(""), metadata: { generateName: "p-" } }, {}],
    ["as a dry run", "POST", "pods?dryRun=All", pod("p"), {}],
    [
      "by server-side apply",
      "PATCH",
      "pods/p?fieldManager=m",
      { apiVersion: "v1", kind: "Pod", ...pod("p") },
      APPLY,
    ],
  ] as const) {
    test(`${how} likewise`, async () => {
      const { send, ok } = await givenServer();
      await ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });

      const sent = send(method, `/api/v1/namespaces/x/${path}`, body, options);
      await ok("POST", "/api/v1/namespaces/x/serviceaccounts", { metadata: { name: "default" } });

      expect((await sent).status).toBe(201);
    });
  }

  test("is created also when it arrives before the namespace", async () => {
    const { send, ok, scheduler } = await givenServer();

    const sent = send("POST", "/api/v1/namespaces/x/pods", pod("p"));
    await scheduler.runFor(NAMESPACE_WAIT_MS - 1);
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });
    await scheduler.runFor(ACCOUNT_WAIT_MS - 1);
    await ok("POST", "/api/v1/namespaces/x/serviceaccounts", { metadata: { name: "default" } });

    expect((await sent).status).toBe(201);
  });
});

describe("what does not come is waited for no longer than the real server does", () => {
  test("a namespace without its default account", async () => {
    const { send, ok, scheduler } = await givenServer();
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });
    let isAnswered = false;

    const sent = send("POST", "/api/v1/namespaces/x/pods", pod("p"));
    void sent.then(() => (isAnswered = true));
    // Others write there meanwhile, and wake it for nothing.
    for (const name of ["a", "b"])
      await ok("POST", "/api/v1/namespaces/x/serviceaccounts", { metadata: { name } });
    await scheduler.runFor(ACCOUNT_WAIT_MS - 1);
    expect(isAnswered).toBe(false);
    await scheduler.runFor(1);

    const answer = await sent;
    expect([answer.status, answer.body.message]).toEqual([
      403,
      'pods "p" is forbidden: error looking up service account x/default: serviceaccount "default" not found',
    ]);
  });

  for (const [what, path, given, status] of [
    ["any other account", "x", { serviceAccountName: "other" }, 403],
    ["any other account by its older name", "x", { serviceAccount: "other" }, 403],
    ["a namespace on its way out", "going", {}, 403],
  ] as const) {
    test(`${what}: not at all`, async () => {
      const { send, ok } = await givenServer();
      await ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });
      await ok("POST", "/api/v1/namespaces", { metadata: { name: "going", finalizers: ["a.io/b"] } });
      await ok("DELETE", "/api/v1/namespaces/going");

      const answer = await send("POST", `/api/v1/namespaces/${path}/pods`, pod("p", given));

      expect(answer.status).toBe(status);
    });
  }

  test("a mirror pod needs nobody", async () => {
    const { send, ok } = await givenServer();
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });
    const metadata = { name: "p", annotations: { "kubernetes.io/config.mirror": "m" } };

    const answer = await send("POST", "/api/v1/namespaces/x/pods", { ...pod("p"), metadata });

    expect(answer.status).toBe(201);
  });
});
