import { describe, expect, test } from "vitest";
import { givenEngine, MERGE } from "./stage.testing.ts";

const SERVICE = "/api/v1/namespaces/default/services/kubernetes";
const ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
const AUTHENTICATION = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const CLASS = "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical";
const TRACKING =
  "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
const WHEN = "2026-01-01T00:00:00Z";
const RANGE = "/apis/networking.k8s.io/v1/servicecidrs/kubernetes";

async function givenAddress(address = "10.1.2.3:6443") {
  const engine = await givenEngine({ rootCa: "CA 1" });
  engine.useAddress(address);
  await engine.settle();
  return engine;
}

describe("what every server keeps:", () => {
  test("a Service that leads to itself", async () => {
    const { ok } = await givenAddress();

    expect((await ok("GET", SERVICE))["spec"]).toMatchObject({
      clusterIP: "10.96.0.1",
      ports: [{ name: "https", port: 443, targetPort: 6443, protocol: "TCP" }],
    });
    expect(((await ok("GET", ENDPOINTS)) as unknown as { subsets: unknown }).subsets).toEqual([
      { addresses: [{ ip: "10.1.2.3" }], ports: [{ name: "https", port: 6443, protocol: "TCP" }] },
    ]);
    expect(await ok("GET", SLICE)).toMatchObject({
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.1.2.3"], conditions: { ready: true } }],
      ports: [{ name: "https", port: 6443, protocol: "TCP" }],
    });
  });

  test("a host that is no address has a Service and no endpoints", async () => {
    const { statusOf } = await givenAddress("server.example:6443");

    expect([await statusOf(SERVICE), await statusOf(ENDPOINTS), await statusOf(SLICE)]).toEqual([
      200, 404, 404,
    ]);
  });

  test("an address of IPv6 has a slice of its family", async () => {
    const { ok } = await givenAddress("[fd00::1]:6443");

    expect(await ok("GET", SLICE)).toMatchObject({
      addressType: "IPv6",
      endpoints: [{ addresses: ["fd00::1"] }],
    });
  });

  test("the range of addresses is ready for use, unless another controller says that it is not", async () => {
    const { ok, settle } = await givenAddress();
    const ready = { conditions: [{ type: "Ready", status: "True" }] };
    const found = async (conditions: unknown) => {
      await ok("PATCH", `${RANGE}/status`, { status: { conditions } }, MERGE);
      await settle();
      return (await ok("GET", RANGE))["status"];
    };
    const isNot = { type: "Ready", status: "False", reason: "R", message: "", lastTransitionTime: WHEN };

    expect((await ok("GET", RANGE))["status"]).toMatchObject(ready);
    expect(await found(null)).toMatchObject(ready);
    expect(await found([isNot])).toEqual({ conditions: [isNot] });
    expect(await found([{ ...isNot, type: "Other" }])).toMatchObject({
      conditions: [{ type: "Other" }, { type: "Ready", status: "True" }],
    });
  });

  for (const [since, kept] of [
    ["2020-02-29", true],
    ["yesterday", false],
    ["2020-13-01", false],
    [null, false],
  ] as const) {
    test(`tokens are tracked since a date: ${since} is ${kept ? "kept" : "made right"}`, async () => {
      const { ok, settle } = await givenAddress();
      const first = (await ok("GET", TRACKING))["data"] as { since: string };

      await ok("PATCH", TRACKING, { data: { since } }, MERGE);
      await settle();

      expect(first.since).toMatch(/^\d{4}-\d{2}-\d{2}$/);
      expect((await ok("GET", TRACKING))["data"]).toEqual(kept ? { since } : first);
    });
  }

  for (const path of [SERVICE, ENDPOINTS, SLICE, AUTHENTICATION, CLASS, RANGE, TRACKING]) {
    test(`${path} comes back when it is deleted`, async () => {
      const { ok, statusOf } = await givenAddress();
      const { uid } = (await ok("GET", path)).metadata;

      await ok("DELETE", path);

      expect(await statusOf(path)).toBe(200);
      expect((await ok("GET", path)).metadata.uid).not.toBe(uid);
    });
  }

  test("what is changed is changed back, and what else is there stays", async () => {
    const { ok, settle } = await givenAddress();

    await ok(
      "PATCH",
      SERVICE,
      { metadata: { labels: { mine: "yes" } }, spec: { ports: [{ port: 444, name: "https" }] } },
      MERGE,
    );
    await ok("PATCH", AUTHENTICATION, { data: { "client-ca-file": "another" } }, MERGE);
    await settle();

    expect((await ok("GET", SERVICE))["spec"]).toMatchObject({ ports: [{ port: 443, targetPort: 6443 }] });
    expect((await ok("GET", SERVICE)).metadata.labels).toMatchObject({ mine: "yes", component: "apiserver" });
    expect((await ok("GET", AUTHENTICATION))["data"]).toEqual({ "client-ca-file": "CA 1" });
  });

  test("a new authority and a new address are told", async () => {
    const { ok, useRootCa, useAddress, settle } = await givenAddress();

    useRootCa("CA 2");
    useAddress("10.1.2.4:7443");
    await settle();

    expect((await ok("GET", AUTHENTICATION))["data"]).toEqual({ "client-ca-file": "CA 2" });
    expect(((await ok("GET", ENDPOINTS)) as unknown as { subsets: unknown }).subsets).toMatchObject([
      { addresses: [{ ip: "10.1.2.4" }] },
    ]);
  });

  test("nothing is written while nothing changes", async () => {
    const { store, stop, start, settle, useAddress } = await givenAddress();
    const { revision } = store;

    await stop();
    start();
    useAddress("10.1.2.3:6443");
    await settle();

    expect(store.revision).toBe(revision);
  });
});

test("controllers that are switched off leave everything alone; what the server keeps is kept", async () => {
  const { ok, statusOf } = await givenEngine({ rootCa: "CA", controllers: new Set() });

  await ok("POST", "/api/v1/namespaces", { metadata: { name: "u" } });

  expect(await statusOf("/api/v1/namespaces/u/serviceaccounts/default")).toBe(404);
  expect(await statusOf("/api/v1/namespaces/u/configmaps/kube-root-ca.crt")).toBe(404);
  expect(await statusOf(CLASS)).toBe(200);
  await ok("DELETE", "/api/v1/namespaces/u");
  expect(await statusOf("/api/v1/namespaces/u")).toBe(200);
});
