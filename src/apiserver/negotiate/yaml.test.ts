import fc from "fast-check";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { toYaml } from "./yaml.ts";

test("an object looks as it does from the real server", () => {
  const configMap = {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name: "n1", resourceVersion: "12", finalizers: ["a.io/b", "c.io/d"], labels: {} },
    data: { a: "b", when: "yes" },
    list: [{ b: 1, a: [true, null] }, []],
  };

  expect(toYaml(JSON.stringify(configMap))).toBe(
    [
      "apiVersion: v1",
      "data:",
      "  a: b",
      '  when: "yes"',
      "kind: ConfigMap",
      "list:",
      "- a:",
      "  - true",
      "  - null",
      "  b: 1",
      "- []",
      "metadata:",
      "  finalizers:",
      "  - a.io/b",
      "  - c.io/d",
      "  labels: {}",
      "  name: n1",
      '  resourceVersion: "12"',
      "",
    ].join("\n"),
  );
});

for (const version of ["1.1", "1.2"] as const) {
  test(`a reader of YAML ${version} finds what was in the JSON`, () => {
    // Keys of JSON objects: YAML gives `<<` and `__proto__` meanings of their own, quoted or not, in this reader.
    const key = fc.string().filter((text) => text !== "<<" && text !== "__proto__");
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(
          null,
          true,
          false,
          "y",
          "No",
          "null",
          "~",
          "12",
          "1e3",
          "2026-01-01",
          "- a",
          "a: b",
          "#",
          "",
        ),
        fc.string(),
        fc.integer(),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(key, tie("value"), { maxKeys: 3 }),
      ),
    }));

    fc.assert(
      fc.property(value, (json) => {
        const text = JSON.stringify(json);
        expect(parse(toYaml(text), { version })).toEqual(JSON.parse(text));
      }),
    );
  });
}
