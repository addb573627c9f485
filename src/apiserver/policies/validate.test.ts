import { describe, expect, test } from "vitest";
import { deployment, givenPolicies } from "./stage.testing.ts";

const REPLICATED = { validations: [{ expression: "object.spec.replicas > 1" }] };

test("a denial says which policy, which binding and why, in the words of a real server", async () => {
  const { validating, create } = await givenPolicies();
  await validating("p", REPLICATED);

  const { status, body } = await create("web", 1);

  const text =
    "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: object.spec.replicas > 1";
  expect(status).toBe(422);
  expect(body).toMatchObject({
    reason: "Invalid",
    message: `deployments.apps "web" is forbidden: ${text}`,
    details: { name: "web", group: "apps", kind: "deployments", causes: [{ message: text }] },
  });
  expect((await create("web", 2)).status).toBe(201);
});

test("messages: an expression, else the fixed one, else the expression that failed", async () => {
  for (const [validation, message] of [
    [{ messageExpression: "'got ' + string(object.spec.replicas)" }, "got 1"],
    // Of string and int there is no sum: it fails, and the fixed message is taken.
    [{ messageExpression: "'got ' + object.spec.replicas", message: " fixed " }, "fixed"],
    [{ messageExpression: "'two\\nlines'", message: "fixed" }, "fixed"],
    [{ messageExpression: "'' + ' '" }, "failed expression: object.spec.replicas > 1"],
  ] as const) {
    const { validating, create } = await givenPolicies();
    await validating("p", { validations: [{ ...REPLICATED.validations[0], ...validation }] });

    expect((await create("web")).body.message).toContain(`denied request: ${message}`);
  }
});

test("a reason decides the code", async () => {
  for (const [reason, code] of [
    ["Unauthorized", 401],
    ["Forbidden", 403],
    ["RequestEntityTooLarge", 413],
    ["Invalid", 422],
  ] as const) {
    const { validating, create } = await givenPolicies();
    await validating("p", { validations: [{ expression: "false", reason }] });

    expect((await create("web")).body).toMatchObject({ code, reason });
  }
});

test("variables are evaluated when they are asked for, each with those before it", async () => {
  const { validating, create } = await givenPolicies();
  await validating("p", {
    variables: [
      { name: "replicas", expression: "object.spec.replicas" },
      { name: "isOdd", expression: "variables.replicas % 2 == 1" },
      { name: "never", expression: "object.spec.nowhere" },
    ],
    validations: [{ expression: "variables.replicas > 1" }, { expression: "variables.isOdd" }],
  });

  expect((await create("a", 1)).status).toBe(422);
  expect((await create("b", 2)).body.message).toContain("failed expression: variables.isOdd");
  expect((await create("c", 3)).status).toBe(201);
});

describe("what a policy is about", () => {
  test("resources, names, operations, and what is left out of them", async () => {
    const { validating, create, send, ok, DEPLOYMENTS } = await givenPolicies();
    await validating(
      "p",
      { validations: [{ expression: "false" }] },
      {
        match: {
          operations: ["UPDATE", "DELETE"],
          excludeResourceRules: [
            {
              apiGroups: ["apps"],
              apiVersions: ["v1"],
              operations: ["*"],
              resources: ["deployments"],
              resourceNames: ["free"],
            },
          ],
        },
      },
    );
    await ok("POST", DEPLOYMENTS, deployment("free", 1));

    expect((await create("web")).status).toBe(201);
    expect((await send("PUT", `${DEPLOYMENTS}/web`, deployment("web", 2))).status).toBe(422);
    expect((await send("DELETE", `${DEPLOYMENTS}/web`)).status).toBe(422);
    expect((await send("PUT", `${DEPLOYMENTS}/free`, deployment("free", 2))).status).toBe(200);
    // `deployments` alone means neither its status nor its scale.
    expect((await send("PUT", `${DEPLOYMENTS}/web/status`, deployment("web", 1))).status).toBe(200);
    expect(
      (await send("PUT", `${DEPLOYMENTS}/web/scale`, { metadata: { name: "web" }, spec: { replicas: 5 } }))
        .status,
    ).toBe(200);
  });

  test("selectors: of the namespace, and of the object as it is or was", async () => {
    const { validating, create, send, ok, DEPLOYMENTS } = await givenPolicies();
    await validating(
      "p",
      { validations: [{ expression: "false" }] },
      {
        match: { objectSelector: { matchLabels: { guarded: "yes" } } },
        binding: { matchResources: { namespaceSelector: { matchLabels: { strict: "yes" } } } },
      },
    );

    expect((await create("a", 1, { labels: { guarded: "yes" } })).status).toBe(201);
    await ok(
      "PATCH",
      "/api/v1/namespaces/t",
      { metadata: { labels: { strict: "yes" } } },
      { type: "application/merge-patch+json" },
    );

    expect((await create("b", 1, { labels: { guarded: "yes" } })).status).toBe(422);
    expect((await create("c", 1)).status).toBe(201);
    // Taking the label away does not get it past the policy.
    expect((await send("PUT", `${DEPLOYMENTS}/a`, deployment("a", 1))).status).toBe(422);
  });

  test("a scale is seen as a Scale, an eviction as an Eviction", async () => {
    const { validating, ok, send, create, DEPLOYMENTS } = await givenPolicies();
    await create("web", 1);
    await ok("POST", "/api/v1/namespaces/t/pods", {
      metadata: { name: "p" },
      spec: { containers: [{ name: "c", image: "i" }] },
    });
    await validating(
      "scale",
      {
        validations: [
          { expression: "object.kind == 'Scale' && object.spec.replicas <= oldObject.spec.replicas + 1" },
        ],
      },
      { match: { resources: ["deployments/scale"] } },
    );
    await validating(
      "evict",
      { validations: [{ expression: "!has(request.subResource)", message: "stay" }] },
      { match: { resources: ["pods/*"] } },
    );
    const scale = (replicas: number) =>
      send("PUT", `${DEPLOYMENTS}/web/scale`, { metadata: { name: "web" }, spec: { replicas } });

    expect((await scale(2)).status).toBe(200);
    expect((await scale(9)).status).toBe(422);
    expect(
      (await send("POST", "/api/v1/namespaces/t/pods/p/eviction", { metadata: { name: "p" } })).body.message,
    ).toContain("stay");
    expect((await send("DELETE", "/api/v1/namespaces/t/pods/p")).status).toBe(200);
  });

  test("an event is asked for under either of its groups", async () => {
    const { validating, send, ADMISSION, ok } = await givenPolicies();
    await validating(
      "p",
      { validations: [{ expression: "object.note != 'no'" }] },
      { match: { resources: ["none"] } },
    );
    const rules = [
      { apiGroups: ["events.k8s.io"], apiVersions: ["v1"], operations: ["*"], resources: ["events"] },
    ];
    await ok(
      "PATCH",
      `${ADMISSION}/validatingadmissionpolicies/p`,
      { spec: { matchConstraints: { resourceRules: rules } } },
      { type: "application/merge-patch+json" },
    );
    const event = (message: string) => ({
      metadata: { name: message },
      message,
      involvedObject: { namespace: "t" },
    });

    expect((await send("POST", "/api/v1/namespaces/t/events", event("no"))).status).toBe(422);
    expect((await send("POST", "/api/v1/namespaces/t/events", event("yes"))).status).toBe(201);
  });

  test("conditions come first: one that does not hold lets everything pass", async () => {
    const { validating, send, DEPLOYMENTS } = await givenPolicies({ guarded: true });
    await validating("p", {
      matchConditions: [{ name: "not-bob", expression: "request.userInfo.username != 'bob'" }],
      validations: [{ expression: "false" }],
    });
    const as = (name: string) => ({ user: { name, groups: ["system:masters"] } });

    expect((await send("POST", DEPLOYMENTS, deployment("a", 1), as("bob"))).status).toBe(201);
    expect((await send("POST", DEPLOYMENTS, deployment("b", 1), as("eve"))).status).toBe(422);
  });
});

describe("what goes wrong", () => {
  test("an expression that fails denies, unless its policy says to ignore that", async () => {
    for (const [failurePolicy, code] of [
      ["Fail", 422],
      ["Ignore", 201],
    ] as const) {
      const { validating, create } = await givenPolicies();
      await validating("p", { failurePolicy, validations: [{ expression: "object.spec.nowhere == 1" }] });

      const { status, body } = await create("web");

      expect(status).toBe(code);
      if (code === 422) {
        expect(body.message).toContain(
          "expression 'object.spec.nowhere == 1' resulted in error: no such key: nowhere",
        );
      }
    }
  });

  test("one that never ends is stopped, and counts as failed", async () => {
    const { validating, create } = await givenPolicies();
    const loop = "lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))";
    await validating("p", { validations: [{ expression: `${loop} || true` }] });

    expect((await create("web")).body.message).toContain("cost limit exceeded");
  });

  test("params: found by name or labels, asked for each, missing ones as the binding says", async () => {
    const { validating, create, ok, send } = await givenPolicies();
    const spec = {
      paramKind: { apiVersion: "v1", kind: "ConfigMap" },
      validations: [{ expression: "object.spec.replicas <= int(params.data.max)" }],
    };
    await validating("named", spec, {
      binding: { paramRef: { name: "limits", parameterNotFoundAction: "Deny" } },
    });

    expect((await create("a", 1)).body.message).toContain(
      "no params found for policy binding with `Deny` parameterNotFoundAction",
    );
    await ok("POST", "/api/v1/namespaces/t/configmaps", {
      metadata: { name: "limits", labels: { l: "1" } },
      data: { max: "3" },
    });
    expect((await create("a", 3)).status).toBe(201);
    expect((await create("b", 4)).status).toBe(422);

    await validating("selected", spec, {
      binding: { paramRef: { selector: { matchLabels: { l: "2" } }, parameterNotFoundAction: "Allow" } },
    });
    expect((await create("c", 3)).status).toBe(201);
    await ok("POST", "/api/v1/namespaces/t/configmaps", {
      metadata: { name: "low", labels: { l: "2" } },
      data: { max: "2" },
    });
    expect((await create("d", 3)).body.message).toContain("'selected'");
    expect((await send("DELETE", "/api/v1/namespaces/t/configmaps/limits")).status).toBe(200);
  });

  test("a kind of params that is not served is a failure of the binding", async () => {
    const { validating, create } = await givenPolicies();
    await validating(
      "p",
      { paramKind: { apiVersion: "x.io/v1", kind: "Foo" }, ...REPLICATED },
      { binding: { paramRef: { name: "x", parameterNotFoundAction: "Allow" } } },
    );

    expect((await create("a", 2)).body.message).toContain("paramKind kind `x.io/v1, Kind=Foo` not known");
  });

  test("a policy counts from its creation to its deletion, and as it is now", async () => {
    const { validating, create, ok, ADMISSION } = await givenPolicies();
    const merge = { type: "application/merge-patch+json" };
    await validating("p", REPLICATED);
    expect((await create("a", 1)).status).toBe(422);

    await ok(
      "PATCH",
      `${ADMISSION}/validatingadmissionpolicies/p`,
      { spec: { validations: [{ expression: "object.spec.replicas > 5" }] } },
      merge,
    );
    expect((await create("a", 3)).status).toBe(422);

    await ok("DELETE", `${ADMISSION}/validatingadmissionpolicies/p`);
    expect((await create("a", 1)).status).toBe(201);

    // The binding is still there: a policy of that name made anew is in force at once.
    await ok("POST", `${ADMISSION}/validatingadmissionpolicies`, {
      metadata: { name: "p" },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] },
          ],
        },
        validations: [{ expression: "false" }],
      },
    });
    expect((await create("b", 9)).status).toBe(422);
  });

  test("nobody locks himself out: policies are never subject to policies", async () => {
    const { validating, mutating, ok, ADMISSION } = await givenPolicies();
    await validating("p", { validations: [{ expression: "false" }] }, { match: { resources: ["*", "*/*"] } });
    await mutating(
      "m",
      {
        mutations: [
          {
            patchType: "JSONPatch",
            jsonPatch: { expression: "[JSONPatch{op: 'remove', path: '/nowhere'}]" },
          },
        ],
      },
      { match: { resources: ["*"] } },
    );

    await validating("q", REPLICATED);
    await ok("DELETE", `${ADMISSION}/validatingadmissionpolicybindings/p`);
    await ok("DELETE", `${ADMISSION}/mutatingadmissionpolicies/m`);
    await ok("POST", "/api/v1/namespaces/t/configmaps", { metadata: { name: "c" } });
  });
});

test("Warn tells and lets pass; Audit alone does nothing; a dry run is judged as well", async () => {
  const { validating, create, send, DEPLOYMENTS } = await givenPolicies();
  await validating("w", REPLICATED, { binding: { validationActions: ["Warn", "Audit"] } });

  const { status, headers } = await create("web", 1);

  expect(status).toBe(201);
  expect(headers["warning"]).toContain(
    "Validation failed for ValidatingAdmissionPolicy 'w' with binding 'w': failed expression",
  );
  await validating("d", { validations: [{ expression: "!request.dryRun" }] });
  expect((await send("POST", `${DEPLOYMENTS}?dryRun=All`, deployment("dry", 2))).status).toBe(422);
  expect((await create("wet", 2)).status).toBe(201);
});

test("a deletion shows what goes as oldObject, and one of many is judged one by one", async () => {
  const { validating, create, send, DEPLOYMENTS } = await givenPolicies();
  await create("keep", 1);
  await create("go", 2);
  await validating(
    "p",
    { validations: [{ expression: "object == null && oldObject.metadata.name != 'keep'" }] },
    { match: { operations: ["DELETE"] } },
  );

  expect((await send("DELETE", `${DEPLOYMENTS}/keep`)).status).toBe(422);
  expect((await send("DELETE", `${DEPLOYMENTS}/go`)).status).toBe(200);
  expect((await send("DELETE", DEPLOYMENTS)).status).toBe(422);
});

test("a namespace is judged by its own labels, and is in no namespace", async () => {
  const { validating, send } = await givenPolicies();
  await validating(
    "p",
    { validations: [{ expression: "namespaceObject == null && false" }] },
    { match: { resources: ["namespaces"], namespaceSelector: { matchLabels: { strict: "yes" } } } },
  );

  expect((await send("POST", "/api/v1/namespaces", { metadata: { name: "a" } })).status).toBe(201);
  expect(
    (await send("POST", "/api/v1/namespaces", { metadata: { name: "b", labels: { strict: "yes" } } })).status,
  ).toBe(422);
});
