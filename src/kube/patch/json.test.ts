import { describe, expect, test } from "vitest";
import { checkDepth, cloneJson, isDeeperThan, jsonEqual, withMembers, type Json } from "./json.ts";

function nested(levels: number): Json {
  let value: Json = "leaf";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

describe("equality", () => {
  for (const [a, b, equal] of [
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: 1, b: undefined }, { a: 1 }, true], // an undefined member is absent
    [{ a: null }, {}, false], // a null one is not
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [{ toString: 1 }, {}, false],
    [{}, { toString: 1 }, false],
    [1, "1", false],
  ] as const) {
    test(`${JSON.stringify(a)} and ${JSON.stringify(b)} are ${equal ? "equal" : "different"}`, () => {
      expect(jsonEqual(a, b)).toBe(equal);
    });
  }

  test("members called __proto__ are compared like any other", () => {
    expect(jsonEqual(JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":2}}'))).toBe(false);
    expect(jsonEqual(JSON.parse('{"__proto__":{}}'), {})).toBe(false);
  });
});

test("a copy shares nothing and keeps odd keys as data", () => {
  const original = JSON.parse('{"a":[{"__proto__":{"polluted":true}}]}') as { a: Json[] };

  const copy = cloneJson(original) as { a: Json[] };

  expect(JSON.stringify(copy)).toBe(JSON.stringify(original));
  expect(copy.a[0]).not.toBe(original.a[0]);
  expect(Object.getPrototypeOf(copy.a[0])).toBe(Object.prototype);
});

test("setting a member called __proto__ sets a member", () => {
  const object = withMembers({}, new Map([["__proto__", { polluted: true }]]));

  expect(JSON.stringify(object)).toBe('{"__proto__":{"polluted":true}}');
  expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
});

describe("depth", () => {
  test("a scalar has none, each container one", () => {
    expect(isDeeperThan("x", 0)).toBe(false);
    expect(isDeeperThan([], 0)).toBe(true);
    expect(isDeeperThan(nested(5), 5)).toBe(false);
    expect(isDeeperThan(nested(6), 5)).toBe(true);
  });

  test("256 levels pass, 257 do not, and a cycle does no harm", () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;

    expect(() => checkDepth(nested(256), "it")).not.toThrow();
    expect(() => checkDepth(nested(257), "it")).toThrow("BadRequest: it nests deeper than 256 levels");
    expect(() => checkDepth(cycle, "it")).toThrow("BadRequest");
  });
});
