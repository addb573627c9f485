import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/05-fields-v1.json" with { type: "json" };
import {
  deepDifference,
  difference,
  EMPTY,
  fromFieldsV1,
  has,
  intersection,
  isEmpty,
  pathsOf,
  setOf,
  toFieldsV1,
  union,
  type FieldSet,
} from "./field-set.ts";
import { describePath, fieldElement, keyElement, parseElement, valueElement } from "./path-element.ts";

function path(text: string) {
  return text.split(".").map(fieldElement);
}

function set(...paths: readonly string[]): FieldSet {
  return setOf(...paths.map(path));
}

function texts(fields: FieldSet): readonly string[] {
  return pathsOf(fields).map((one) => describePath(one).slice(1));
}

describe("FieldsV1", () => {
  test("all 86 sets of the recordings come back in their own spelling and order", () => {
    for (const fields of recorded.fields) {
      const back = toFieldsV1(fromFieldsV1(fields)!);
      expect(JSON.stringify(back)).toBe(JSON.stringify(fields));
    }
    expect(recorded.fields).toHaveLength(86);
  });

  test("a path with others below it is marked with a dot", () => {
    expect(toFieldsV1(set("data", "data.k"))).toEqual({ "f:data": { ".": {}, "f:k": {} } });
    expect(toFieldsV1(set("data.k"))).toEqual({ "f:data": { "f:k": {} } });
    expect(toFieldsV1(EMPTY)).toEqual({});
  });

  test("elements stand in the order of their values, not of their texts", () => {
    const ports = [443, 80, 8080].map((port) => keyElement([["containerPort", port]]));
    const fields = toFieldsV1(
      setOf(...[...ports, valueElement(true), valueElement("x")].map((one) => [one])),
    );

    expect(Object.keys(fields)).toEqual([
      'k:{"containerPort":80}',
      'k:{"containerPort":443}',
      'k:{"containerPort":8080}',
      'v:"x"',
      "v:true",
    ]);
  });

  test("however a client spells a key, it is the same key", () => {
    const spelt = fromFieldsV1({ 'k:{ "protocol": "TCP", "containerPort": 80 }': {} })!;
    const own = setOf([
      keyElement([
        ["containerPort", 80],
        ["protocol", "TCP"],
      ]),
    ]);

    expect(isEmpty(difference(own, spelt))).toBe(true);
    expect(parseElement('v:"a<b"')).toBe('v:"a\\u003cb"');
  });

  for (const [what, fields] of [
    ["no object", []],
    ["a value that is no object", { "f:a": "x" }],
    ["a step without a colon", { fa: {} }],
    ["a step of one character", { f: {} }],
    ["a key that is no JSON", { "k:{": {} }],
    ["a key that is no object", { "k:1": {} }],
    ["a value that is no JSON", { "v:x": {} }],
  ] as const) {
    test(`${what} is no FieldsV1`, () => expect(fromFieldsV1(fields)).toBeUndefined());
  }

  test("steps of a kind that a later version may know are left out", () => {
    expect(texts(fromFieldsV1({ "f:a": {}, "z:b": { "f:c": {} } })!)).toEqual(["a"]);
  });

  test("a field named __proto__ is a field", () => {
    const fields = fromFieldsV1(JSON.parse('{"f:data":{"f:__proto__":{}}}'))!;

    expect(has(fields, path("data.__proto__"))).toBe(true);
  });
});

describe("sets of fields", () => {
  const a = set("x", "x.y", "x.z", "p.q");
  const b = set("x", "x.z", "p");

  test("union, intersection and difference go path by path", () => {
    expect(texts(union(a, b))).toEqual(["p", "x", "p.q", "x.y", "x.z"]);
    expect(texts(intersection(a, b))).toEqual(["x", "x.z"]);
    expect(texts(difference(a, b))).toEqual(["p.q", "x.y"]);
    expect(texts(difference(b, a))).toEqual(["p"]);
  });

  test("a deep difference takes everything below a path with it", () => {
    expect(texts(deepDifference(a, b))).toEqual([]);
    expect(texts(deepDifference(a, set("x.y", "p")))).toEqual(["x", "x.z"]);
  });

  test("nothing in common gives the very same set back", () => {
    expect(difference(a, set("other", "x.other"))).toBe(a);
    expect(union(a, set("x.y"))).toBe(a);
    expect(union(EMPTY, a)).toBe(a);
  });

  test("a set knows its paths and not those on the way", () => {
    expect(has(a, path("p.q"))).toBe(true);
    expect(has(a, path("p"))).toBe(false);
    expect(has(a, path("p.q.r"))).toBe(false);
  });

  test("operations leave their arguments alone", () => {
    const before = texts(a);
    union(a, set("new", "x.new"));
    difference(a, set("x.y"));

    expect(texts(a)).toEqual(before);
  });

  test("paths read as conflicts show them", () => {
    const ports = keyElement([
      ["containerPort", 80],
      ["protocol", "TCP"],
    ]);
    const one = [...path("spec.containers"), keyElement([["name", "c"]]), fieldElement("ports"), ports];

    expect(describePath(one)).toBe('.spec.containers[name="c"].ports[containerPort=80,protocol="TCP"]');
    expect(describePath([...path("metadata.finalizers"), valueElement("a.io/b")])).toBe(
      '.metadata.finalizers[="a.io/b"]',
    );
  });
});
