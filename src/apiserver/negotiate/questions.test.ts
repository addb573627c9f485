import { describe, expect, test } from "vitest";
import { givenServer } from "../scenario.testing.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const AUTHORIZATION = "/apis/authorization.k8s.io/v1";
const PODS = "/api/v1/namespaces/t/pods";
const POD = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } };
const PATH = { nonResourceAttributes: { path: "/", verb: "get" } };

/** What is asked and never kept has no columns, in the real server as here. */
describe("a table of", () => {
  for (const [path, body] of [
    [`${AUTHORIZATION}/selfsubjectaccessreviews`, { spec: PATH }],
    [`${AUTHORIZATION}/subjectaccessreviews`, { spec: { user: "ann", ...PATH } }],
    [`${AUTHORIZATION}/selfsubjectrulesreviews`, { spec: { namespace: "t" } }],
    [`${AUTHORIZATION}/namespaces/t/localsubjectaccessreviews`, { spec: { user: "ann" } }],
    ["/apis/authentication.k8s.io/v1/selfsubjectreviews", {}],
    ["/apis/authentication.k8s.io/v1/tokenreviews", { spec: { token: "x" } }],
    ["/api/v1/namespaces/t/serviceaccounts/default/token", {}],
    [`${PODS}/p/eviction`, { metadata: { name: "p" } }],
    [`${PODS}/p/binding`, { metadata: { name: "p" }, target: { kind: "Node", name: "n" } }],
    ["/api/v1/namespaces/t/bindings", { metadata: { name: "p" }, target: { kind: "Node", name: "n" } }],
  ] as const) {
    test(`POST ${path} is 406, and nothing happens`, async () => {
      const { send, ok, store } = await givenServer({ guarded: true });
      await ok("POST", PODS, POD);
      const { revision } = store;

      const answer = await send("POST", path, body, { headers: { accept: TABLE } });

      expect([answer.status, answer.body.message]).toEqual([
        406,
        "only the following media types are accepted: application/json, application/yaml",
      ]);
      expect(store.revision).toBe(revision);
    });
  }

  test("a review is passed over for what is named next", async () => {
    const { send } = await givenServer({ guarded: true });
    const path = `${AUTHORIZATION}/selfsubjectaccessreviews`;

    const json = await send(
      "POST",
      path,
      { spec: PATH },
      { headers: { accept: `${TABLE},application/json` } },
    );
    const yaml = await send("POST", path, { spec: PATH }, { headers: { accept: "application/yaml" } });

    expect([json.status, json.body.kind]).toEqual([201, "SelfSubjectAccessReview"]);
    expect([yaml.status, yaml.headers["content-type"]]).toEqual([201, "application/yaml"]);
    expect(yaml.text).toContain("\nstatus:\n  allowed: true\n");
  });
});
