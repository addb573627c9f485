import { describe, expect, test } from "vitest";
import { requestAttributes, resourceAccess } from "./attributes.ts";

const PODS = "/api/v1/namespaces/t/pods";

describe("what a request asks for", () => {
  for (const [request, verb, expected] of [
    [`GET ${PODS}`, "list", { resource: "pods", namespace: "t" }],
    [`GET ${PODS}/`, "list", { resource: "pods", namespace: "t" }],
    [`GET ${PODS}?watch=1`, "watch", { resource: "pods", namespace: "t" }],
    [`GET ${PODS}?watch=false`, "list", { resource: "pods", namespace: "t" }],
    [`GET ${PODS}/p`, "get", { resource: "pods", namespace: "t", name: "p" }],
    [`GET ${PODS}/p?watch=true`, "get", { resource: "pods", namespace: "t", name: "p" }],
    [`HEAD ${PODS}/p`, "get", { resource: "pods", namespace: "t", name: "p" }],
    [`POST ${PODS}`, "create", { resource: "pods", namespace: "t" }],
    [
      `POST ${PODS}/p/binding`,
      "create",
      { resource: "pods", namespace: "t", name: "p", subresource: "binding" },
    ],
    [
      `PUT ${PODS}/p/status`,
      "update",
      { resource: "pods", namespace: "t", name: "p", subresource: "status" },
    ],
    [`PATCH ${PODS}/p`, "patch", { resource: "pods", namespace: "t", name: "p" }],
    [`DELETE ${PODS}/p`, "delete", { resource: "pods", namespace: "t", name: "p" }],
    [`DELETE ${PODS}`, "deletecollection", { resource: "pods", namespace: "t" }],
    ["OPTIONS /api/v1/pods", "", { resource: "pods" }],
    ["GET /api/v1/pods", "list", { resource: "pods" }],
    ["GET /api/v1/watch/pods", "watch", { resource: "pods" }],
    ["GET /api/v1/watch/namespaces/t/pods", "watch", { resource: "pods", namespace: "t" }],
    [
      "GET /apis/storage.k8s.io/v1/csinodes/n",
      "get",
      { group: "storage.k8s.io", resource: "csinodes", name: "n" },
    ],
    // A Namespace is asked for within itself.
    ["GET /api/v1/namespaces", "list", { resource: "namespaces" }],
    ["GET /api/v1/namespaces/t", "get", { resource: "namespaces", namespace: "t", name: "t" }],
    [
      "PUT /api/v1/namespaces/t/finalize",
      "update",
      { resource: "namespaces", namespace: "t", name: "t", subresource: "finalize" },
    ],
    // Rights come before existence.
    ["GET /apis/nope.io/v9/foos", "list", { group: "nope.io", resource: "foos" }],
    ["GET /api/v1/namespaces/a%20b/pods", "list", { resource: "pods", namespace: "a b" }],
  ] as const) {
    test(`${request} is ${verb || "nothing"}`, () => {
      const [method, target] = split(request);

      expect(requestAttributes(method, target)).toEqual(resourceAccess({ verb, ...expected }));
    });
  }

  for (const path of [
    "/",
    "/healthz",
    "/version/",
    "/metrics",
    "/api",
    "/api/v1",
    "/apis/storage.k8s.io",
    "/apis/storage.k8s.io/v1",
    "/api/v1/watch",
    "/openapi/v3/api/v1",
    // Neither is taken apart by the router, so neither may look like a resource here.
    "/api//v1/pods",
    "/api/v1/namespaces/a%2Fpods/x",
    "/api/v1/pods/%zz",
  ]) {
    test(`${path} is a path, not a resource`, () => {
      expect(requestAttributes("GET", path)).toEqual({ kind: "path", verb: "get", path });
    });
  }

  test("a list of one name is about that object, so a role that names it allows it", () => {
    const access = requestAttributes(
      "GET",
      "/api/v1/namespaces/t/secrets?fieldSelector=metadata.name%3Ds&watch=1",
    );

    expect(access).toMatchObject({ verb: "watch", name: "s" });
  });

  test("a selector that cannot be read, or stands twice, narrows nothing", () => {
    for (const query of [
      "fieldSelector=nonsense",
      "fieldSelector=metadata.name=a&fieldSelector=metadata.name=b",
    ]) {
      expect(requestAttributes("GET", `${PODS}?${query}`)).toMatchObject({ name: "", fieldSelector: [] });
    }
  });
});

function split(request: string): [string, string] {
  const [method = "", target = ""] = request.split(" ");
  return [method, target];
}
