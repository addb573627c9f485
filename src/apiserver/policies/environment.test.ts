import { describe, expect, test } from "vitest";
import { compileExpression, ExpressionError, type Wanted } from "./environment.ts";
import { givenPolicies } from "./stage.testing.ts";

function verdict(source: string, wanted: Wanted): string {
  try {
    compileExpression(source, { hasParams: false, isMutation: wanted !== "bool" }, wanted);
    return "";
  } catch (error) {
    if (error instanceof ExpressionError) return error.message.split("\n", 1)[0] ?? "";
    throw error;
  }
}

/** What the compiler of kube-apiserver 1.36.3 said to the same expressions; of syntax errors the place alone. */
describe("expressions are refused as a real server refuses them", () => {
  const at = (place: string, text: string) => `compilation failed: ERROR: <input>:${place}: ${text}`;
  for (const [source, wanted, expected] of [
    ["object.spec.replicas > 1", "bool", ""],
    ["object.spec.paused", "bool", "must evaluate to bool but got dyn"],
    ["object.x ==", "bool", at("1:12", "Syntax error: mismatched input '<EOF>'")],
    ["foo.bar == 1", "bool", at("1:1", "undeclared reference to 'foo' (in container '')")],
    ["'a' + 1 == 'b'", "bool", at("1:5", "found no matching overload for '_+_' applied to '(string, int)'")],
    ["request.foo == ''", "bool", at("1:8", "undefined field 'foo'")],
    ["has(object.a) ? true : object.b", "bool", "must evaluate to bool but got dyn"],
    ["[1, 'a'].size() == 1", "bool", at("1:5", "expected type 'int' but found 'string'")],
    ["object.a.matches('(')", "bool", at("1:18", "invalid matches argument")],
    ["duration('x') == duration('1s')", "bool", at("1:10", "invalid duration argument")],
    [
      "object.x.startsWith(1)",
      "bool",
      at("1:20", "found no matching overload for 'startsWith' applied to 'dyn.(int)'"),
    ],
    ["size(1) == 2", "bool", at("1:5", "found no matching overload for 'size' applied to '(int)'")],
    ["1 + 2", "bool", "must evaluate to bool but got int"],
    ["params.x == 1", "bool", at("1:1", "undeclared reference to 'params' (in container '')")],
    ["namespaceObject.metadata.creationTimestamp < timestamp('2020-01-01T00:00:00Z')", "bool", ""],
    ["request.namespace == 'x'", "bool", ""],
    ["[] == [1]", "bool", ""],
    ["object.all(x, x)", "bool", ""],
    ["'a'.foo()", "bool", at("1:8", "undeclared reference to 'foo' (in container '')")],
    [
      "object.a == 'b' &&\n  objct.c == 1",
      "bool",
      at("2:3", "undeclared reference to 'objct' (in container '')"),
    ],
    ["1 == 1.0", "bool", at("1:3", "found no matching overload for '_==_' applied to '(int, double)'")],
    ["[]", "list(JSONPatch)", "must evaluate to list(JSONPatch) but got list(dyn)"],
    ["has(object.a) ? [JSONPatch{op: 'add'}] : []", "list(JSONPatch)", ""],
    ["has(object.a) ? [] : [JSONPatch{op: 'add'}]", "list(JSONPatch)", ""],
    [
      "[JSONPatch{op: 1}]",
      "list(JSONPatch)",
      at("1:14", "expected type of field 'op' is 'string' but provided type is 'int'"),
    ],
    ["JSONPatch{}", "list(JSONPatch)", "must evaluate to list(JSONPatch) but got JSONPatch"],
    ["Object{}", "Object", ""],
    ["{}", "Object", "must evaluate to Object but got map(dyn, dyn)"],
    ["Object.spec{}", "Object", "must evaluate to Object but got Object.spec"],
    ["Foo{}", "Object", at("1:4", "undeclared reference to 'Foo' (in container '')")],
    ["Object{spec: Object.foo{}}", "Object", ""],
    ["object", "Object", "must evaluate to Object but got dyn"],
  ] as const) {
    test(source, () => expect(verdict(source, wanted)).toBe(expected));
  }

  test("what this server does not offer is named", () => {
    expect(verdict("authorizer.group('').resource('pods').check('get').allowed()", "bool")).toContain(
      "this server offers policies no authorizer",
    );
  });
});

test("quantities are compared by what they stand for", () => {
  for (const source of [
    "quantity('1.5G').add(quantity('0.5G')) == quantity('2000M')",
    "quantity('50k').sub(20000).asInteger() == 30000 && quantity('50M').compareTo(quantity('50Mi')) == -1",
    "isQuantity('1.3Gi') && !isQuantity('200K') && quantity('-1').sign() == -1 && !quantity('500m').isInteger()",
    "quantity('150Mi').isGreaterThan(quantity('100Mi')) && quantity('1').isLessThan(quantity('2'))",
  ]) {
    const program = compileExpression(source, { hasParams: false }, "bool");

    expect(
      program.evaluate(() => undefined, { charge: () => undefined }),
      source,
    ).toBe(true);
  }
});

test("a policy that cannot be evaluated is not stored, and each of its mistakes is told with its path", async () => {
  const { send, ok, ADMISSION, validating } = await givenPolicies();
  const matchConstraints = {
    resourceRules: [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"] }],
  };
  const spec = {
    matchConstraints,
    matchConditions: [{ name: "a", expression: "variables.x" }],
    variables: [{ name: "for", expression: "1" }],
    validations: [{ expression: "object.a = 1", messageExpression: "1", message: "a\nb", reason: "Gone" }],
    auditAnnotations: [{ key: "k", valueExpression: "2" }],
  };

  const { status, body } = await send("POST", `${ADMISSION}/validatingadmissionpolicies`, {
    metadata: { name: "p" },
    spec,
  });

  expect(status).toBe(422);
  expect(body.details.causes.map(({ field }) => field)).toEqual([
    "spec.matchConditions[0].expression",
    "spec.validations[0].expression",
    "spec.validations[0].messageExpression",
    "spec.auditAnnotations[0].valueExpression",
    "spec.variables[0].name",
    "spec.validations[0].message",
    "spec.validations[0].reason",
  ]);
  expect(body.message).toContain(
    'spec.validations[0].expression: Invalid value: "object.a = 1": compilation failed: ERROR: <input>:1:10: ',
  );

  // What is stored may stay as it is when something else is changed, and not be changed for the worse.
  await validating("q", { validations: [{ expression: "true" }] });
  const merge = { type: "application/merge-patch+json" };
  const path = `${ADMISSION}/validatingadmissionpolicies/q`;
  expect((await send("PATCH", path, { spec: { validations: [{ expression: "x" }] } }, merge)).status).toBe(
    422,
  );
  await ok("PATCH", path, { metadata: { labels: { a: "b" } } }, merge);
});
