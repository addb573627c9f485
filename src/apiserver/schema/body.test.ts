import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/03-decode-steps.json" with { type: "json" };
import { StatusError } from "../errors.ts";
import { decodeBody, decodeOptions, decodePatched, type FieldValidation } from "./body.ts";
import type { GroupVersionKind } from "./schema.ts";
import { warningHeader } from "./warnings.ts";

const configMaps = { group: "", version: "v1", kind: "ConfigMap" };
const snapshots = { group: "snapshot.storage.k8s.io", version: "v1", kind: "VolumeSnapshot" };
const deleteOptions = { group: "", version: "v1", kind: "DeleteOptions" };

function post(
  kind: GroupVersionKind,
  body: string | Uint8Array,
  {
    type = "application/json",
    fieldValidation = "Warn",
  }: { type?: string; fieldValidation?: FieldValidation } = {},
) {
  return decodeBody(kind, { headers: { "content-type": type }, body }, fieldValidation);
}

function statusOf(call: () => unknown) {
  try {
    call();
  } catch (error) {
    if (error instanceof StatusError) return error.status;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** Up to where the text of the Go decoder begins, which is nobody's contract. */
function withoutGoText(message: string): string {
  return (message.split(/json parse error|in scheme|: cannot parse/)[0] ?? "").replace(/ as ".*$/, "").trim();
}

describe("as a real server answered", () => {
  for (const step of recorded.steps) {
    test(`${step.from}: ${step.note} is ${step.status}`, () => {
      const options = { type: step.contentType, fieldValidation: step.fieldValidation as FieldValidation };
      if (step.status < 300) {
        const { object, warnings } = post(step.kind, step.body, options);
        expect(object).toMatchObject(step.stored ?? {});
        expect(object).not.toHaveProperty("foo");
        expect(warningHeader(warnings)).toBe(step.warning);
        return;
      }

      const { code, message } = statusOf(() => post(step.kind, step.body, options));

      expect(code).toBe(step.status);
      expect(withoutGoText(message)).toBe(withoutGoText(step.message ?? ""));
    });
  }
});

describe("bodies", () => {
  test("kind and apiVersion come from the path when they are left out", () => {
    expect(post(configMaps, '{"metadata":{"name":"a"}}').object).toEqual({
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: { name: "a" },
    });
    expect(post(configMaps, "{}").object.metadata).toEqual({});
  });

  test("bytes are read as UTF-8", () => {
    expect(post(configMaps, Buffer.from('{"data":{"k":"ü"}}')).object["data"]).toEqual({ k: "ü" });
  });

  test("an error quotes the beginning of the body", () => {
    const { message } = statusOf(() => post(configMaps, `{"a": ${"x".repeat(100)}`));

    expect(message).toMatch(/\(\{"a": x{24} \.\.\.\)$/);
  });

  test("Ignore neither warns nor looks for duplicates", () => {
    const { warnings } = post(configMaps, '{"foo":1,"data":{"a":"1","a":"2"}}', {
      fieldValidation: "Ignore",
    });

    expect(warnings).toEqual([]);
  });

  test("what is below an unknown field is not called a duplicate too", () => {
    const { warnings } = post(configMaps, '{"foo":{"a":1,"a":2},"foo":1,"data":{"b":"1","b":"2"}}');

    expect(warnings).toEqual(['unknown field "foo"', 'duplicate field "data.b"']);
  });

  test("a body that nests without end is 400, not a crash", () => {
    const { code } = statusOf(() => post(configMaps, `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`));

    expect(code).toBe(400);
  });

  test("custom resources take no protobuf", () => {
    const { code, message } = statusOf(() =>
      post(snapshots, Buffer.from("k8s\0"), { type: "application/vnd.kubernetes.protobuf" }),
    );

    expect(code).toBe(415);
    expect(message).toMatch(/include: application\/json, application\/yaml$/);
  });
});

describe("outcomes of patches", () => {
  test("an unknown field is a warning by default", () => {
    const { object, warnings } = decodePatched(configMaps, { foo: 1 });

    expect(object).not.toHaveProperty("foo");
    expect(warnings).toEqual(['unknown field "foo"']);
  });

  test("under Strict it is 422 on the field patch, and so is a wrong type at any time", () => {
    const strict = { fieldValidation: "Strict" } as const;
    const unknown = statusOf(() => decodePatched(configMaps, { foo: 1 }, strict));
    const wrong = statusOf(() => decodePatched(configMaps, { data: { k: 5 } }));

    expect(unknown).toMatchObject({
      code: 422,
      reason: "Invalid",
      details: { causes: [{ reason: "FieldValueInvalid", field: "patch" }] },
    });
    expect(unknown.message).toContain('strict decoding error: unknown field "foo"');
    expect(wrong).toMatchObject({ code: 422, details: { causes: [{ field: "patch" }] } });
  });

  test("keys that the patch says twice are told of", () => {
    const duplicates = ["data.a"];

    expect(decodePatched(configMaps, { data: { a: "2" } }, { duplicates }).warnings).toEqual([
      'duplicate field "data.a"',
    ]);
  });

  for (const [what, value] of [
    ["another kind", { kind: "Secret" }],
    ["a kind nobody knows", { kind: "Gadget" }],
    ["another version", { apiVersion: "v2" }],
    ["a kind that is no text", { kind: 1 }],
    ["a list", []],
  ] as const) {
    test(`${what} is 422 on the field patch`, () => {
      expect(statusOf(() => decodePatched(configMaps, value))).toMatchObject({
        code: 422,
        details: { causes: [{ field: "patch" }] },
      });
    });
  }
});

describe("YAML", () => {
  const yaml = (body: string, fieldValidation?: FieldValidation) =>
    post(configMaps, body, {
      type: "application/yaml; charset=utf-8",
      ...(fieldValidation && { fieldValidation }),
    });

  test("is read like JSON", () => {
    expect(yaml("kind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: |\n    x\n").object).toEqual({
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: { name: "a" },
      data: { k: "x\n" },
    });
    expect(decodeOptions(deleteOptions, { headers: YAML, body: "gracePeriodSeconds: 3" })).toEqual({
      gracePeriodSeconds: 3,
    });
  });

  test("unknown and duplicate fields are warnings, errors under Strict, and nothing under Ignore", () => {
    const body = "foo: 1\ndata:\n  a: '1'\n  a: '2'\n";

    expect(yaml(body).object["data"]).toEqual({ a: "2" });
    expect(yaml(body).warnings).toEqual(['unknown field "foo"', 'duplicate field "data.a"']);
    expect(yaml(body, "Ignore").warnings).toEqual([]);
    expect(statusOf(() => yaml(body, "Strict")).message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ' +
        'unknown field "foo", duplicate field "data.a"',
    );
  });

  for (const [what, body] of [
    ["a text", "hello"],
    ["a list", "- 1"],
    ["nothing", ""],
    ["broken", "a: [1"],
    ["two documents", "kind: ConfigMap\n---\nkind: ConfigMap\n"],
    ["another kind", "kind: Secret"],
    ["a boolean where a text belongs", "metadata:\n  name: y\n"],
    ["of 20,000 levels", "[".repeat(20_000)],
    ["a list that contains itself", "data: &a [*a]"],
    ["a bomb of aliases", aliasBomb()],
  ] as const) {
    test(`that is ${what} is 400`, () => {
      expect(statusOf(() => yaml(body)).code).toBe(400);
    });
  }
});

const YAML = { "content-type": "application/yaml" };

/** Nine levels of nine aliases each: 387 million nodes. */
function aliasBomb(): string {
  const levels = Array.from({ length: 9 }, (_, level) => {
    const items = level === 0 ? "x" : `*l${level - 1}`;
    return `l${level}: &l${level} [${Array(9).fill(items).join(", ")}]`;
  });
  return levels.join("\n");
}

describe("an empty list of managers", () => {
  for (const metadata of [{ managedFields: [] }, { name: "a", managedFields: [] }]) {
    test(`stays, unlike any other empty list: ${JSON.stringify(metadata)}`, () => {
      const body = JSON.stringify({ metadata: { ...metadata, finalizers: [] } });

      expect(post(configMaps, body).object.metadata).toEqual(metadata);
      expect(decodePatched(configMaps, JSON.parse(body)).object.metadata).toEqual(metadata);
    });
  }
});

describe("options", () => {
  test("an empty body is empty options", () => {
    expect(decodeOptions(deleteOptions, { headers: {}, body: "" })).toEqual({});
  });

  test("any apiVersion will do, and unknown fields mean nothing", () => {
    const body = JSON.stringify({
      kind: "DeleteOptions",
      apiVersion: "storage.k8s.io/v1",
      gracePeriodSeconds: 0,
      bogus: 1,
    });

    expect(decodeOptions(deleteOptions, { headers: {}, body })).toMatchObject({ gracePeriodSeconds: 0 });
  });

  test("a wrong type or another kind is 400", () => {
    for (const body of ['{"gracePeriodSeconds":"1"}', '{"kind":"Pod"}', "[]", "{"]) {
      expect(statusOf(() => decodeOptions(deleteOptions, { headers: {}, body })).code).toBe(400);
    }
  });
});
