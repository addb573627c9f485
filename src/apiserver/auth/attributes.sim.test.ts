import { expect, test } from "vitest";
import { pick, type Random } from "../../base/random.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { parseRoute } from "../routes.ts";
import { requestAttributes } from "./attributes.ts";

const PREFIXES = [
  "/api/v1",
  "/apis/storage.k8s.io/v1",
  "/apis/coordination.k8s.io/v1",
  "/apis/nope.io/v1",
  "/api",
  "",
];
const SEGMENTS = [
  ...[
    "namespaces",
    "namespaces",
    "pods",
    "nodes",
    "leases",
    "csinodes",
    "status",
    "finalize",
    "token",
    "watch",
  ],
  ...["t", "x", "a%2Fb", "a%20b", "%6eamespaces", "po%64s", "..", "", "%", "api", "v1"],
];

test("authorisation and routing read every path the same way: nobody is let in for one object and given another", async () => {
  let resources = 0;
  await forSeeds(60, (random) => {
    for (let count = 0; count < 1_000; count++) {
      const path = randomPath(random);
      const route = parseRoute(path);
      if (route.kind !== "resource") continue;
      const { resource, namespace = "", name = "", subresource = "" } = route;
      const isNamespace = resource.plural === "namespaces";

      expect(requestAttributes("PUT", path), path).toMatchObject({
        kind: "resource",
        group: resource.group,
        resource: resource.plural,
        namespace: isNamespace ? name : namespace,
        name,
        subresource,
      });
      resources++;
    }
  });
  expect(resources).toBeGreaterThan(10);
});

function randomPath(random: Random): string {
  const inside = pick(random, ["", "/namespaces/t", "/namespaces/a%20b"]);
  const segments = Array.from({ length: random.int(5) }, () => `/${pick(random, SEGMENTS)}`);
  return `${pick(random, PREFIXES)}${inside}${segments.join("")}` || "/";
}
