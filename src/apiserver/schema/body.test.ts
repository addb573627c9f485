import { describe, expect, test } from "vitest";
import recorded from "../../../test/fixtures/apiserver/03-decode-steps.json" with { type: "json" };
import { StatusError } from "../errors.ts";
import { decodeBody, decodeObject, decodeOptions, decodePatched, type FieldValidation } from "./body.ts";
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
  return (message.split(/json parse error|in scheme|: cannot parse/)[0] ?? "")
    .replace("application/yaml, ", "")
    .replace(/ as ".*$/, "")
    .trim();
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

  test("a value that was parsed elsewhere is judged alike, but for duplicates", () => {
    const { object, warnings } = decodeObject(configMaps, { data: { a: "1" }, foo: 1 });

    expect(object["data"]).toEqual({ a: "1" });
    expect(warnings).toEqual(['unknown field "foo"']);
    expect(statusOf(() => decodeObject(configMaps, { data: 1 })).code).toBe(400);
    expect(statusOf(() => decodeObject(configMaps, { foo: 1 }, { fieldValidation: "Strict" })).code).toBe(
      400,
    );
  });

  test("custom resources take no protobuf", () => {
    const { code, message } = statusOf(() =>
      post(snapshots, Buffer.from("k8s\0"), { type: "application/vnd.kubernetes.protobuf" }),
    );

    expect(code).toBe(415);
    expect(message).toMatch(/include: application\/json$/);
  });
});

describe("outcomes of patches", () => {
  test("an unknown field is a warning by default", () => {
    const { object, warnings } = decodePatched(configMaps, { foo: 1 }, { patchText: '{"foo":1}' });

    expect(object).not.toHaveProperty("foo");
    expect(warnings).toEqual(['unknown field "foo"']);
  });

  test("under Strict it is 422 on the field patch, and so is a wrong type at any time", () => {
    const strict = { fieldValidation: "Strict", patchText: "{}" } as const;
    const unknown = statusOf(() => decodePatched(configMaps, { foo: 1 }, strict));
    const wrong = statusOf(() => decodePatched(configMaps, { data: { k: 5 } }, { patchText: "{}" }));

    expect(unknown).toMatchObject({
      code: 422,
      reason: "Invalid",
      details: { causes: [{ reason: "FieldValueInvalid", field: "patch" }] },
    });
    expect(unknown.message).toContain('strict decoding error: unknown field "foo"');
    expect(wrong).toMatchObject({ code: 422, details: { causes: [{ field: "patch" }] } });
  });

  test("duplicate keys are looked for in the patch, not in its outcome", () => {
    const patchText = '{"data":{"a":"1","a":"2"}}';

    expect(decodePatched(configMaps, { data: { a: "2" } }, { patchText }).warnings).toEqual([
      'duplicate field "data.a"',
    ]);
  });
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
