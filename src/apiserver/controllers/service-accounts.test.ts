import { describe, expect, test } from "vitest";
import { givenEngine } from "./stage.testing.ts";

const ACCOUNTS = "/api/v1/namespaces/x/serviceaccounts";
const ROOT_CA = "/api/v1/namespaces/x/configmaps/kube-root-ca.crt";

async function givenNamespace(rootCa: string | undefined = "the authority") {
  const engine = await givenEngine({ rootCa });
  await engine.ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });
  return engine;
}

describe("a namespace", () => {
  test("is born with its default account and the authority's certificate", async () => {
    const { ok } = await givenNamespace();

    expect((await ok("GET", ACCOUNTS)).items.map(({ metadata }) => metadata.name)).toEqual(["default"]);
    expect(await ok("GET", ROOT_CA)).toMatchObject({
      metadata: { annotations: { "kubernetes.io/description": expect.any(String) } },
      data: { "ca.crt": "the authority" },
    });
  });

  test("of the system has them as well", async () => {
    const { statusOf } = await givenEngine({ rootCa: "the authority" });

    for (const name of ["default", "kube-system", "kube-public", "kube-node-lease"]) {
      expect(await statusOf(`/api/v1/namespaces/${name}/serviceaccounts/default`)).toBe(200);
      expect(await statusOf(`/api/v1/namespaces/${name}/configmaps/kube-root-ca.crt`)).toBe(200);
    }
  });

  test("gets no certificate from a server that has none", async () => {
    const { statusOf, ok } = await givenEngine();
    await ok("POST", "/api/v1/namespaces", { metadata: { name: "x" } });

    expect([await statusOf(`${ACCOUNTS}/default`), await statusOf(ROOT_CA)]).toEqual([200, 404]);
  });

  test("gets back what is taken from it", async () => {
    const { ok } = await givenNamespace();
    const { metadata: before } = await ok("GET", `${ACCOUNTS}/default`);

    await ok("DELETE", `${ACCOUNTS}/default`);
    await ok("DELETE", ROOT_CA);

    const { metadata: after } = await ok("GET", `${ACCOUNTS}/default`);
    expect(after.uid).not.toBe(before.uid);
    expect((await ok("GET", ROOT_CA)).data).toEqual({ "ca.crt": "the authority" });
  });

  test("has its certificate put right when somebody changes it, and other changes are left alone", async () => {
    const { ok, store } = await givenNamespace();

    await ok(
      "PATCH",
      ROOT_CA,
      { data: { "ca.crt": "another" }, metadata: { labels: { own: "label" } } },
      {
        type: "application/merge-patch+json",
      },
    );

    const put = await ok("GET", ROOT_CA);
    expect([put.data, put.metadata.labels]).toEqual([{ "ca.crt": "the authority" }, { own: "label" }]);
    const { revision } = store;
    await ok("GET", ROOT_CA);
    expect(store.revision).toBe(revision);
  });

  test("is told of a new authority while the server runs, without a restart", async () => {
    const { ok, useRootCa, settle } = await givenNamespace();

    useRootCa("the authority and the next");
    await settle();

    for (const name of ["x", "default", "kube-system"]) {
      const path = `/api/v1/namespaces/${name}/configmaps/kube-root-ca.crt`;
      expect((await ok("GET", path)).data).toEqual({ "ca.crt": "the authority and the next" });
    }
    await ok("DELETE", ROOT_CA);
    expect((await ok("GET", ROOT_CA)).data).toEqual({ "ca.crt": "the authority and the next" });
  });

  test("that is going gets nothing any more", async () => {
    const { ok, send, settle } = await givenNamespace();
    await ok("POST", "/api/v1/namespaces/x/configmaps", {
      metadata: { name: "stay", finalizers: ["ex.io/x"] },
    });
    await ok("DELETE", "/api/v1/namespaces/x");

    await settle();

    const names = (await send("GET", "/api/v1/namespaces/x/configmaps")).body.items.map(
      ({ metadata }) => metadata.name,
    );
    expect(names).toEqual(["stay"]);
    expect((await send("GET", ACCOUNTS)).body.items).toEqual([]);
  });
});
