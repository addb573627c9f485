import { describe, expect, test } from "vitest";
import { conformanceCases, fromWire, typeFromWire, type ConformanceCase } from "./conformance.testing.ts";
import { equal } from "./equality.ts";
import { CelError } from "./errors.ts";
import { Functions } from "./functions.ts";
import { STANDARD } from "./library/standard.ts";
import { Budget, compile } from "./program.ts";
import { DYN } from "./types.ts";
import { typeName, type Value } from "./values.ts";

/**
 * The suite of the CEL project, all of it that is about values an API object can have. What is left out is counted by
 * reason, so that nothing falls out of it unseen.
 */
const cases = conformanceCases();
const LEFT_OUT = {
  "messages and enums of protobuf": 683,
  "a library that Kubernetes does not switch on": 233,
  "names in a container, which Kubernetes sets to none": 2,
  "types alone, of messages, of functions only declared or of free type variables": 25,
};
const RUN = 1_401;

const FOREIGN_FILES = ["math_ext", "encoders_ext", "bindings_ext", "block_ext"];
const MESSAGE_FILES = ["proto2", "proto2_ext", "proto3", "enums"];
const MESSAGES =
  /TestAllTypes|NestedMessage|^Value\{|google\.protobuf\.(?!Timestamp\b|Duration\b)|GlobalEnum|NestedEnum/;

function reasonLeftOut({ file, name, test }: ConformanceCase): keyof typeof LEFT_OUT | undefined {
  const bindings = Object.values(test.bindings).map(({ kind }) => kind);
  const isMessage = bindings.some(({ case: is, value }) => is === "value" && fromWire(value) === undefined);
  if (MESSAGE_FILES.includes(file) || MESSAGES.test(test.expr) || isMessage) {
    return "messages and enums of protobuf";
  }
  if (FOREIGN_FILES.includes(file)) return "a library that Kubernetes does not switch on";
  if (name.includes("container_lookup")) return "names in a container, which Kubernetes sets to none";
  const isDeclaredOnly = test.typeEnv.some(({ declKind }) => declKind.case === "function");
  if (file === "type_deductions" && (test.checkOnly || isDeclaredOnly)) {
    return "types alone, of messages, of functions only declared or of free type variables";
  }
  return undefined;
}

describe("the CEL project's own suite", () => {
  const functions = new Functions(STANDARD);
  const applicable = cases.filter((one) => reasonLeftOut(one) === undefined);

  test("every case is run, or counted under its reason", () => {
    const counts = Object.fromEntries(
      Object.keys(LEFT_OUT).map((reason) => [
        reason,
        cases.filter((one) => reasonLeftOut(one) === reason).length,
      ]),
    );

    expect(counts).toEqual(LEFT_OUT);
    expect(applicable.length).toBe(RUN);
  });

  for (const { name: title, test: given } of applicable) {
    test(title, () => {
      const bindings = new Map(
        Object.entries(given.bindings).map(([name, { kind }]) => [
          name,
          kind.case === "value" ? fromWire(kind.value) : undefined,
        ]),
      );
      const declared = given.typeEnv.flatMap(({ name, declKind }) =>
        declKind.case === "ident" ? [[name, typeFromWire(declKind.value.type)] as const] : [],
      );
      const variables = new Map([...[...bindings.keys()].map((name) => [name, DYN] as const), ...declared]);
      const run = () =>
        compile(given.expr, { variables, functions }, { checked: !given.disableCheck }).evaluate(
          (name) => bindings.get(name),
          new Budget(100_000),
        );

      const { case: matcher, value: expected } = given.resultMatcher;
      if (matcher === "evalError" || matcher === "anyEvalErrors") expect(run).toThrow(CelError);
      else if (matcher === "typedResult") expectValue(run(), expected.result && fromWire(expected.result));
      else expectValue(run(), matcher === "value" ? fromWire(expected) : true);
    });
  }
});

function expectValue(found: Value, wanted: Value | undefined): void {
  if (wanted === undefined) throw new Error("the suite expects a value that is not one of ours");
  expect(typeName(found)).toBe(typeName(wanted));
  if (typeof wanted === "number" && Number.isNaN(wanted)) expect(found).toBeNaN();
  else expect(equal(found, wanted, () => undefined)).toBe(true);
}
