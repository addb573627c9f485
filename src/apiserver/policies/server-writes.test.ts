import { expect, test } from "vitest";
import { createSeededRandom } from "../../base/seeded-random.ts";
import { createMissing } from "../controllers/writes.ts";
import { createObject } from "../verbs/create.ts";
import { kindOf } from "../controllers/served.ts";
import { givenPolicies } from "./stage.testing.ts";

test("controllers of the server are clients to a policy; what the server needs to start is not asked about", async () => {
  const { validating, store, clock } = await givenPolicies();
  const deps = { store, clock, random: createSeededRandom("writes") };
  await validating(
    "p",
    {
      validations: [{ expression: "request.userInfo.username != 'system:kube-controller-manager'" }],
    },
    { match: { resources: ["serviceaccounts", "namespaces"] } },
  );
  const account = { metadata: { name: "made" } };

  await expect(createMissing(deps, "serviceaccounts", "t", account)).rejects.toThrow("denied request");
  await validating("all", { validations: [{ expression: "false" }] }, { match: { resources: ["*"] } });
  const namespace = { namespace: undefined, object: { metadata: { name: "sys" } }, dryRun: false };
  await expect(createObject(deps, kindOf("namespaces"), namespace)).resolves.toContain('"sys"');
});
