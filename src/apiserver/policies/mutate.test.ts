import { expect, test } from "vitest";
import { deployment, givenPolicies } from "./stage.testing.ts";

const apply = (expression: string) => ({
  patchType: "ApplyConfiguration",
  applyConfiguration: { expression },
});
const jsonPatch = (expression: string) => ({ patchType: "JSONPatch", jsonPatch: { expression } });

test("an apply configuration is merged, in order, and nobody owns what it sets", async () => {
  const { mutating, create } = await givenPolicies();
  await mutating("a", {
    mutations: [
      apply("Object{spec: Object.spec{replicas: 1337}}"),
      apply("Object{metadata: Object.metadata{annotations: {'seen': string(object.spec.replicas)}}}"),
    ],
  });

  const { status, body } = await create("web", 1);

  expect(status).toBe(201);
  expect(body.spec["replicas"]).toBe(1337);
  expect(body.metadata.annotations).toEqual({ seen: "1337" });
  expect(JSON.stringify(body.metadata.managedFields)).not.toContain("seen");
});

test("a list with keys is merged element by element, and gets its defaults", async () => {
  const { mutating, create } = await givenPolicies();
  const container = "Object.spec.template.spec.containers{name: 'sidecar', image: 'x'}";
  await mutating("a", {
    mutations: [
      apply(
        `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [${container}]}}}}`,
      ),
    ],
  });

  const { body } = await create("web", 1);

  expect(body.spec).toMatchObject({
    template: {
      spec: { containers: [{ name: "c" }, { name: "sidecar", image: "x", imagePullPolicy: "Always" }] },
    },
  });
});

test("a JSON patch: keys escaped, and a test that does not hold leaves everything as it was", async () => {
  const { mutating, create } = await givenPolicies();
  await mutating("a", {
    mutations: [
      jsonPatch(
        "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a/b': 'x'}}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('c/d'), value: 'y'}]",
      ),
      jsonPatch(
        "[JSONPatch{op: 'test', path: '/spec/replicas', value: 7}, JSONPatch{op: 'replace', path: '/spec/replicas', value: 8}]",
      ),
    ],
  });

  expect((await create("web", 1)).body).toMatchObject({
    metadata: { labels: { "a/b": "x", "c/d": "y" } },
    spec: { replicas: 1 },
  });
  expect((await create("seven", 7)).body.spec["replicas"]).toBe(8);
});

test("what cannot be done is refused with the policy's name, or ignored where it says so", async () => {
  for (const [expression, why] of [
    ["Object{spec: Object.spec{nowhere: 1}}", "spec.nowhere: field not declared in schema"],
    ["Object{spec: Object.metadata{}}", "type mismatch: unexpected type name"],
    [
      "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}",
      "may not mutate atomic arrays, maps or structs: .spec.selector",
    ],
    ["Object{spec: Object.spec{replicas: 'many'}}", "cannot unmarshal"],
    ["Object{spec: Object.spec{replicas: object.spec.foo}}", "no such key: foo"],
  ] as const) {
    for (const failurePolicy of ["Fail", "Ignore"]) {
      const { mutating, create } = await givenPolicies();
      await mutating("a", { failurePolicy, mutations: [apply(expression)] });

      const { status, body } = await create("web", 1);

      if (failurePolicy === "Ignore") expect(status).toBe(201);
      else {
        expect(body).toMatchObject({ code: 403, reason: "Invalid" });
        expect(body.message).toContain("policy 'a' with binding 'a' denied request: ");
        expect(body.message).toContain(why);
      }
    }
  }
});

test("what a policy makes is validated, and validating policies see it", async () => {
  const { mutating, validating, create } = await givenPolicies();
  await mutating("m", {
    mutations: [apply("Object{spec: Object.spec{replicas: object.spec.replicas - 10}}")],
  });
  await validating("v", {
    validations: [
      { expression: "object.spec.replicas < 5", messageExpression: "'saw ' + string(object.spec.replicas)" },
    ],
  });

  expect((await create("a", 1)).body.message).toContain("spec.replicas: Invalid value: -9");
  expect((await create("b", 20)).body.message).toContain("saw 10");
  expect((await create("c", 12)).body.spec["replicas"]).toBe(2);
});

test("a policy sees what came after it once more, if it asks for that", async () => {
  for (const [reinvocationPolicy, seen] of [
    ["Never", "1"],
    ["IfNeeded", "5"],
  ] as const) {
    const { mutating, create } = await givenPolicies();
    const note = "Object{metadata: Object.metadata{annotations: {'seen': string(object.spec.replicas)}}}";
    await mutating("a", { reinvocationPolicy, mutations: [apply(note)] });
    await mutating("b", { mutations: [apply("Object{spec: Object.spec{replicas: 5}}")] });

    expect((await create("web", 1)).body.metadata.annotations).toEqual({ seen });
  }
});

test("neither the name nor what the server sets is a policy's to change", async () => {
  const { mutating, create, send, DEPLOYMENTS } = await givenPolicies();
  await mutating("a", {
    mutations: [apply("Object{metadata: Object.metadata{name: 'other', uid: 'x', labels: {'l': '1'}}}")],
  });

  const { body } = await create("web", 1);

  expect(body.metadata).toMatchObject({ name: "web", labels: { l: "1" } });
  expect(body.metadata.uid).not.toBe("x");
  const updated = await send("PUT", `${DEPLOYMENTS}/web`, deployment("web", 2));
  expect(updated.body.metadata).toMatchObject({ name: "web", uid: body.metadata.uid, labels: { l: "1" } });
});
