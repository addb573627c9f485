import { describe, expect, test } from "vitest";
import { givenCluster } from "./scenario.testing.ts";

const ACCOUNTS = "/api/v1/namespaces/t/serviceaccounts";
const TOKEN = `${ACCOUNTS}/sa/token`;

async function givenAccount() {
  const cluster = await givenCluster();
  await cluster.ok("POST", ACCOUNTS, { metadata: { name: "sa" } });
  const ask = (spec: object, metadata: object = {}) => cluster.send("POST", TOKEN, { metadata, spec });
  return { ...cluster, ask };
}

describe("TokenRequest", () => {
  test("claims are those of the spec, with times of the wall clock", async () => {
    const { ask, clock, keys } = await givenAccount();

    const { body } = await ask({ audiences: ["a", "b"], expirationSeconds: 700 });

    const nowSeconds = clock.wall().getTime() / 1_000;
    expect(keys.verifyToken(String(body.status["token"]))).toEqual({
      iss: "https://kubernetes.default.svc",
      sub: "system:serviceaccount:t:sa",
      aud: ["a", "b"],
      iat: nowSeconds,
      nbf: nowSeconds,
      exp: nowSeconds + 700,
      "kubernetes.io": { namespace: "t", serviceaccount: { name: "sa", uid: expect.any(String) } },
    });
    expect(body.status["expirationTimestamp"]).toBe("2026-01-01T00:11:40Z");
  });

  for (const [expirationSeconds, status] of [
    [599, 422],
    [600, 201],
    [2 ** 32, 201],
    [2 ** 32 + 1, 422],
    [0, 422],
    [600.5, 400],
    ["600", 400],
  ] as const) {
    test(`${JSON.stringify(expirationSeconds)} seconds are ${status}`, async () => {
      const { ask } = await givenAccount();

      expect((await ask({ expirationSeconds })).status).toBe(status);
    });
  }

  test("a name in the body must be the account's", async () => {
    const { ask } = await givenAccount();

    expect((await ask({}, { name: "sa", namespace: "t" })).status).toBe(201);
    const { status, body } = await ask({}, { name: "other" });
    expect([status, body.details.causes[0]?.field]).toEqual([422, "metadata.name"]);
  });

  test("a token can be bound to a pod of that account, a secret or a node, by uid if given", async () => {
    const { ask, ok } = await givenAccount();
    const pod = await ok("POST", "/api/v1/namespaces/t/pods", podOf("sa"));
    await ok("POST", "/api/v1/namespaces/t/secrets", { metadata: { name: "s" } });
    await ok("POST", "/api/v1/nodes", { metadata: { name: "n" } });
    const bind = async (reference: object) => {
      const { status, body } = await ask({ boundObjectRef: reference });
      return status === 201 ? status : `${status} ${body.reason}: ${body.message}`;
    };

    expect(await bind({ kind: "Pod", name: "p", uid: pod.metadata.uid })).toBe(201);
    expect(await bind({ kind: "Secret", apiVersion: "v1", name: "s" })).toBe(201);
    expect(await bind({ kind: "Node", apiVersion: "v1", name: "n" })).toBe(201);
    expect(await bind({ kind: "Secret", apiVersion: "v1", name: "gone" })).toBe(
      '404 NotFound: secrets "gone" not found',
    );
    expect(await bind({ kind: "Pod", apiVersion: "v1", name: "p", uid: "old" })).toBe(
      '409 Conflict: Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated',
    );
    expect(await bind({ kind: "Deployment", apiVersion: "apps/v1", name: "d" })).toBe(
      "400 BadRequest: cannot bind token to object of type apps/v1, Kind=Deployment",
    );
  });

  test("a pod that runs as another account is refused", async () => {
    const { ask, ok } = await givenAccount();
    await ok("POST", "/api/v1/namespaces/t/serviceaccounts", { metadata: { name: "other" } });
    await ok("POST", "/api/v1/namespaces/t/pods", podOf("other"));

    const { status, body } = await ask({ boundObjectRef: { kind: "Pod", apiVersion: "v1", name: "p" } });

    expect(status).toBe(400);
    expect(body.message).toBe(
      'cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name.',
    );
  });
});

function podOf(serviceAccountName: string) {
  return { metadata: { name: "p" }, spec: { serviceAccountName, containers: [{ name: "c", image: "i" }] } };
}
