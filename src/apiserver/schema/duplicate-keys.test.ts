import { describe, expect, test } from "vitest";
import { findDuplicateKeys } from "./duplicate-keys.ts";

describe("duplicate keys", () => {
  for (const [text, paths] of [
    ["{}", []],
    ['{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}', []],
    ['{"a":1,"a":2}', ["a"]],
    ['{"a":1,"a":2,"a":3}', ["a"]],
    ['{"data":{"a":"1","a":"2"}}', ["data.a"]],
    ['{"spec" : { "list" : [ {"x":1} , {"n":1, "n" : 2} ] } }', ["spec.list[1].n"]],
    ['[[{"a":1}],[{"a":1,"a":2}]]', ["[1][0].a"]],
    ['{"a":"\\"a\\":1,","b":"{\\"b\\":","a":1}', ["a"]],
    ['{"a\\\\":1,"a\\\\":1}', ["a\\"]],
    ['{"a":1,"\\u0061":2}', ["a"]], // one key in two spellings
    ['{"a":["a","a"],"b":"a"}', []], // strings that are no keys
    ['{"":1,"":2}', [""]],
    ['{"__proto__":1,"__proto__":2}', ["__proto__"]],
  ] as const) {
    test(`${text} has ${paths.length === 0 ? "none" : paths.join()}`, () => {
      expect(findDuplicateKeys(text)).toEqual(paths);
    });
  }

  test("are found among many", () => {
    const members = Array.from({ length: 1_000 }, (_, at) => `"k${at}":${at}`);

    expect(findDuplicateKeys(`{${[...members, '"k500":0'].join()}}`)).toEqual(["k500"]);
  });

  test("a hundred are enough", () => {
    const members = Array.from({ length: 500 }, (_, at) => `"k${at}":1,"k${at}":2`);

    expect(findDuplicateKeys(`{${members.join()}}`)).toHaveLength(100);
  });

  test("512 levels may nest, and not one more", () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

    expect(findDuplicateKeys(nested(512))).toEqual([]);
    expect(() => findDuplicateKeys(nested(513))).toThrow("the body nests deeper than 512 levels");
  });
});
