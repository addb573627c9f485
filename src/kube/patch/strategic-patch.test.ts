import { describe, expect, test } from "vitest";
import { KubeError } from "../errors.ts";
import { nodePatchSchema, objectPatchSchema, podPatchSchema, type PatchSchema } from "./patch-schema.ts";
import { applyStrategicPatch } from "./strategic-patch.ts";

function codeOf(act: () => unknown): string {
  try {
    act();
    return "none";
  } catch (error) {
    return error instanceof KubeError ? error.code : String(error);
  }
}

const pod = (spec: object) => ({ metadata: { name: "p" }, spec });
const patchPod = (spec: object, patch: object) =>
  applyStrategicPatch(pod(spec), { spec: patch }, podPatchSchema)["spec"];
const finalizers = (list: string[], patch: object) =>
  (
    applyStrategicPatch({ metadata: { finalizers: list } }, { metadata: patch }, objectPatchSchema)[
      "metadata"
    ] as {
      finalizers?: string[];
    }
  ).finalizers;

describe("objects", () => {
  const patchData = (data: object | undefined, patch: unknown) =>
    applyStrategicPatch({ data }, { data: patch }, objectPatchSchema);

  for (const [story, data, patch, result] of [
    ["members merge", { a: "1", b: "2" }, { b: "3", c: "4" }, { data: { a: "1", b: "3", c: "4" } }],
    ["null takes a member away", { a: "1", b: "2" }, { a: null }, { data: { b: "2" } }],
    ["null takes the whole away", { a: "1" }, null, {}],
    [
      "$patch: replace keeps only what the patch gives",
      { a: "1" },
      { $patch: "replace", b: "2" },
      { data: { b: "2" } },
    ],
    [
      "$patch: replace where there is nothing",
      undefined,
      { $patch: "replace", b: "2" },
      { data: { b: "2" } },
    ],
    ["$patch: delete empties it", { a: "1" }, { $patch: "delete" }, { data: {} }],
    ["$patch: delete where there is nothing", undefined, { $patch: "delete" }, {}],
    ["an unknown $patch is data", { a: "1" }, { $patch: "bogus" }, { data: { a: "1", $patch: "bogus" } }],
    [
      "$retainKeys drops what it does not list",
      { a: "1", b: "2" },
      { $retainKeys: ["b", "c"], c: "3" },
      { data: { b: "2", c: "3" } },
    ],
    ["nulls of something new are left out", undefined, { a: "1", b: null }, { data: { a: "1" } }],
    ["a scalar gives way to an object", "text", { a: "1" }, { data: { a: "1" } }],
    ["an object gives way to a scalar", { a: "1" }, "text", { data: "text" }],
  ] as const) {
    test(story, () => {
      expect(patchData(data as object, patch)).toEqual(result);
    });
  }

  test("an object whose schema says so is replaced", () => {
    const schema: PatchSchema = {
      strategy: "merge",
      field: () => ({ strategy: "replace", field: () => undefined }),
    };

    expect(applyStrategicPatch({ spec: { a: 1 } }, { spec: { b: null, c: 1 } }, schema)).toEqual({
      spec: { c: 1 },
    });
  });
});

describe("lists that merge by key", () => {
  const [a, b, c] = [
    { name: "a", image: "1" },
    { name: "b", image: "1" },
    { name: "c", image: "1" },
  ];

  for (const [story, list, patch, names] of [
    [
      "an element the patch knows stays in its place",
      [a, b],
      { containers: [{ name: "b", image: "2" }] },
      "a1 b2",
    ],
    ["a new element comes first", [a, b], { containers: [c] }, "c1 a1 b1"],
    ["known elements follow the patch's order", [a, b, c], { containers: [c, a] }, "b1 c1 a1"],
    ["$patch: delete takes one away", [a, b], { containers: [{ $patch: "delete", name: "a" }] }, "b1"],
    ["deleting what is not there does nothing", [a], { containers: [{ $patch: "delete", name: "x" }] }, "a1"],
    ["$patch: replace keeps only the others given", [a, b], { containers: [{ $patch: "replace" }, c] }, "c1"],
    ["an empty patch list changes nothing", [a, b], { containers: [] }, "a1 b1"],
    [
      "$setElementOrder orders without a list",
      [a, b, c],
      { "$setElementOrder/containers": [{ name: "c" }, { name: "b" }, { name: "a" }] },
      "c1 b1 a1",
    ],
    [
      "$setElementOrder puts a new element where it belongs",
      [a, b],
      { "$setElementOrder/containers": [{ name: "a" }, { name: "c" }, { name: "b" }], containers: [c] },
      "a1 c1 b1",
    ],
    [
      "an element unknown to $setElementOrder keeps its relative place",
      [a, { name: "injected", image: "1" }, b],
      {
        "$setElementOrder/containers": [{ name: "a" }, { name: "b" }],
        containers: [{ name: "b", image: "2" }],
      },
      "a1 injected1 b2",
    ],
    [
      "elements with a common key: the first is patched",
      [a, { name: "a", image: "9" }],
      { containers: [{ name: "a", image: "2" }] },
      "a2 a9",
    ],
  ] as const) {
    test(story, () => {
      const { containers } = patchPod({ containers: list }, patch) as {
        containers: { name: string; image: string }[];
      };

      expect(containers.map(({ name, image }) => name + image).join(" ")).toBe(names);
    });
  }

  test("elements merge by their own schema, at any depth", () => {
    const before = {
      containers: [{ name: "a", args: ["x"], env: [{ name: "E", value: "1" }, { name: "F" }] }],
    };

    const after = patchPod(before, {
      containers: [{ name: "a", args: ["y"], env: [{ name: "E", value: "2" }] }],
    });

    expect(after).toEqual({
      containers: [{ name: "a", args: ["y"], env: [{ name: "E", value: "2" }, { name: "F" }] }],
    });
  });

  test("directives inside something new do not reach the document", () => {
    const patch = {
      containers: [
        {
          name: "a",
          env: [{ name: "E" }, { $patch: "delete", name: "F" }],
          "$setElementOrder/env": [{ name: "E" }],
          tty: null,
        },
      ],
      volumes: [{ name: "v", $retainKeys: ["name", "emptyDir"], emptyDir: {} }],
    };

    expect(patchPod({}, patch)).toEqual({
      containers: [{ name: "a", env: [{ name: "E" }] }],
      volumes: [{ name: "v", emptyDir: {} }],
    });
  });

  test("a volume that changes its source loses the old one", () => {
    const before = { volumes: [{ name: "v", emptyDir: {} }] };
    const patch = { volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] };

    expect(patchPod(before, patch)).toEqual({ volumes: [{ name: "v", hostPath: { path: "/x" } }] });
  });
});

describe("sets", () => {
  for (const [story, list, patch, result] of [
    ["a new item comes first", ["a", "b"], { finalizers: ["c"] }, "c a b"],
    ["a known item adds nothing", ["a", "b"], { finalizers: ["b"] }, "a b"],
    [
      "items are taken away by a parallel list",
      ["a", "b"],
      { "$deleteFromPrimitiveList/finalizers": ["a", "x"] },
      "b",
    ],
    [
      "items are added, taken away and ordered at once",
      ["a", "b"],
      {
        finalizers: ["c"],
        "$deleteFromPrimitiveList/finalizers": ["a"],
        "$setElementOrder/finalizers": ["b", "c"],
      },
      "b c",
    ],
    ["order alone can change", ["a", "b"], { "$setElementOrder/finalizers": ["b", "a"] }, "b a"],
    [
      "an item unknown to the order stays",
      ["x", "a", "b"],
      { "$setElementOrder/finalizers": ["b", "a"] },
      "x b a",
    ],
  ] as const) {
    test(story, () => {
      expect(finalizers([...list], patch)?.join(" ")).toBe(result);
    });
  }

  test("null takes the list away, and a parallel list of nothing does nothing", () => {
    expect(finalizers(["a"], { finalizers: null })).toBeUndefined();
    expect(finalizers(["a"], { finalizers: null, "$setElementOrder/finalizers": ["a"] })).toBeUndefined();
    expect(
      applyStrategicPatch(
        {},
        { metadata: { "$deleteFromPrimitiveList/finalizers": ["a"] } },
        objectPatchSchema,
      ),
    ).toEqual({ metadata: {} });
  });
});

test("lists without a strategy are replaced: volumesInUse and taints", () => {
  const before = { spec: { taints: [{ key: "a" }, { key: "b" }] }, status: { volumesInUse: ["v1", "v2"] } };
  const patch = { spec: { taints: [{ key: "c" }] }, status: { volumesInUse: ["v2"] } };

  expect(applyStrategicPatch(before, patch, nodePatchSchema)).toEqual(patch);
});

test("what does not change is shared, and a patch that changes nothing returns the document", () => {
  const document = {
    metadata: { finalizers: ["a"] },
    spec: { containers: [{ name: "a", image: "1" }], nodeName: "n" },
  };
  const nothing = {
    metadata: { finalizers: ["a"], "$setElementOrder/finalizers": ["a"], labels: null },
    spec: {
      containers: [
        { name: "a", image: "1" },
        { name: "b", $patch: "delete" },
      ],
      nodeName: "n",
    },
  };

  expect(applyStrategicPatch(document, nothing, podPatchSchema)).toBe(document);
  expect(applyStrategicPatch(document, { spec: { nodeName: "m" } }, podPatchSchema)["metadata"]).toBe(
    document.metadata,
  );
});

describe("a patch that cannot be carried out is refused, with its path", () => {
  for (const [patch, code, message] of [
    [[], "BadRequest", "error decoding patch"],
    [
      { spec: { containers: [{ image: "x" }] } },
      "Invalid",
      "spec.containers: an element does not contain declared merge key: name",
    ],
    [{ spec: { containers: [{ $patch: "delete" }] } }, "Invalid", "spec.containers"],
    [{ spec: { containers: ["x"] } }, "Invalid", "spec.containers"],
    [{ spec: { containers: [{ name: "a", env: [{}] }] } }, "Invalid", 'spec.containers[name="a"].env'],
    [{ metadata: { finalizers: [["x"]] } }, "Invalid", "metadata.finalizers"],
    [
      { metadata: { "$setElementOrder/finalizers": "x" } },
      "BadRequest",
      "metadata: $setElementOrder/finalizers",
    ],
    [
      { metadata: { "$deleteFromPrimitiveList/finalizers": {} } },
      "BadRequest",
      "metadata: $deleteFromPrimitiveList",
    ],
    [{ spec: { $retainKeys: "x" } }, "BadRequest", "spec: $retainKeys must be a list"],
    [{ spec: { $retainKeys: ["x"], y: 1 } }, "BadRequest", 'spec: the patch sets "y"'],
    [
      { metadata: { finalizers: ["b", "a"], "$setElementOrder/finalizers": ["a", "b"] } },
      "Invalid",
      "metadata.finalizers: the patch's items do not follow its $setElementOrder",
    ],
    [
      { metadata: { finalizers: ["z"], "$setElementOrder/finalizers": ["a"] } },
      "Invalid",
      "metadata.finalizers",
    ],
  ] as const) {
    test(JSON.stringify(patch), () => {
      const document = {
        metadata: { finalizers: ["f"] },
        spec: { containers: [{ name: "a", env: [{ name: "E" }] }] },
      };
      const act = () => applyStrategicPatch(document, patch, podPatchSchema);

      expect(codeOf(act)).toBe(code);
      expect(act).toThrow(message);
    });
  }

  test("objects in a list that merges without a key", () => {
    expect(() =>
      applyStrategicPatch({ metadata: {} }, { metadata: { finalizers: [{}] } }, objectPatchSchema),
    ).toThrow("Invalid: metadata.finalizers: objects in a list without a merge key");
  });
});

test("keys that name prototypes stay data", () => {
  const patch: unknown = JSON.parse(
    '{"data":{"__proto__":{"polluted":"1"},"$setElementOrder/__proto__":[]}}',
  );

  const result = applyStrategicPatch({ data: {} }, patch, objectPatchSchema);

  expect(JSON.stringify(result)).toBe('{"data":{"__proto__":{"polluted":"1"}}}');
  expect(({} as { polluted?: string }).polluted).toBeUndefined();
});
