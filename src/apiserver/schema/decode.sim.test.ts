import { expect, test } from "vitest";
import { chance, pick, type Random } from "../../base/random.ts";
import { formatJson } from "../../kube/json-text.ts";
import type { Json, JsonObject } from "../../kube/patch/json.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { StatusError } from "../errors.ts";
import { KINDS } from "../kinds.ts";
import { toYaml } from "../negotiate/yaml.ts";
import { decodeBody } from "./body.ts";
import { completeObject } from "./complete.ts";
import { findDuplicateKeys } from "./duplicate-keys.ts";
import { encodeProtobuf } from "./protobuf.testing.ts";
import { knownSchema, type ObjectSchema, type ScalarKind, type TypeSchema } from "./schema.ts";

const PROTOBUF_KINDS = KINDS.filter((kind) => !knownSchema(kind).isCustom);
const headers = { "content-type": "application/vnd.kubernetes.protobuf" };

test("any object says the same in protobuf as in JSON", async () => {
  await forSeeds(300, (random) => {
    const kind = pick(random, PROTOBUF_KINDS);
    const object = randomObject(random, knownSchema(kind));

    const fromProtobuf = decodeBody(kind, { headers, body: encodeProtobuf(kind, object) }).object;
    const fromJson = decodeBody(kind, { headers: {}, body: formatJson(object) }).object;

    // But for the one empty list that says something, and that protobuf cannot say.
    const { managedFields = [], ...metadata } = fromJson.metadata;
    const expected = managedFields.length === 0 ? { ...fromJson, metadata } : fromJson;
    expect(fromProtobuf).toEqual(expected);
  });
});

test("any object says the same in YAML as in JSON", async () => {
  await forSeeds(300, (random) => {
    const kind = pick(random, KINDS);
    const body = formatJson(randomObject(random, knownSchema(kind)));

    const fromYaml = decodeBody(kind, {
      headers: { "content-type": "application/yaml" },
      body: toYaml(body),
    });

    expect(fromYaml).toEqual(decodeBody(kind, { headers: {}, body }));
  });
});

test("YAML of chance is an object or 400, never anything else", async () => {
  const signs = [
    "[",
    "{",
    "- ",
    "? ",
    ": ",
    "a: ",
    "&a ",
    "*a ",
    "<<: ",
    "\n",
    "  ",
    "|\n",
    "'",
    '"',
    "!!set ",
    "0o7 ",
    "%",
  ];
  await forSeeds(2_000, (random) => {
    const body = Array.from({ length: random.int(40) }, () => pick(random, signs)).join("");

    expectObjectOr400(() =>
      decodeBody(pick(random, KINDS), { headers: { "content-type": "application/yaml" }, body }),
    );
  });
});

test("decoding what was decoded, or completed, changes nothing", async () => {
  await forSeeds(300, (random) => {
    const kind = pick(random, KINDS);
    const object = randomObject(random, knownSchema(kind));
    const decode = (value: unknown) =>
      decodeBody(kind, { headers: {}, body: formatJson(value) }, "Strict").object;

    const short = decode(object);
    const complete = completeObject(kind, short);

    expect(decode(short)).toEqual(short);
    expect(decode(complete)).toEqual(short);
    expect(formatJson(completeObject(kind, decode(complete)))).toBe(formatJson(complete));
  });
});

test("damaged protobuf is an object or 400, never anything else", async () => {
  await forSeeds(2_000, (random) => {
    const kind = pick(random, PROTOBUF_KINDS);
    const body = encodeProtobuf(kind, randomObject(random, knownSchema(kind)));
    const changes = 1 + random.int(4);
    for (let change = 0; change < changes; change++) body[random.int(body.length)] = random.int(256);
    const cut = body.subarray(0, chance(random, 0.2) ? random.int(body.length) : body.length);

    expectObjectOr400(() => decodeBody(kind, { headers, body: cut }));
  });
});

test("bytes of chance behind the magic are an object or 400", async () => {
  await forSeeds(2_000, (random) => {
    const noise = Buffer.from(Array.from({ length: random.int(200) }, () => random.int(256)));
    const length = noise.length;
    const envelope = chance(random, 0.5)
      ? Buffer.from([0x12, 0x80 | (length & 0x7f), length >> 7])
      : Buffer.alloc(0);
    const body = Buffer.concat([Buffer.from("k8s\0"), envelope, noise]);

    expectObjectOr400(() => decodeBody(pick(random, PROTOBUF_KINDS), { headers, body }));
  });
});

test("a value written by JSON.stringify has no duplicates, and one that is put in is found", async () => {
  await forSeeds(500, (random) => {
    const text = JSON.stringify(randomJson(random, 4), undefined, random.int(3));
    expect(findDuplicateKeys(text)).toEqual([]);

    const key = JSON.stringify(pick(random, ["a", 'quo"te', "back\\slash", "ü", "{", ""]));
    const repeated = `{${key}: ${text} ,${key}:[${text}]}`;

    expect(findDuplicateKeys(repeated)).toEqual([JSON.parse(key)]);
  });
});

test("damaged JSON is an object or 400", async () => {
  await forSeeds(1_000, (random) => {
    const kind = pick(random, KINDS);
    const text = formatJson(randomObject(random, knownSchema(kind)));
    const at = random.int(text.length);
    const body =
      text.slice(0, at) +
      pick(random, ['"', "{", "}", "[", "1", "null", ",", '"x":', "\\"]) +
      text.slice(at + 1);

    expectObjectOr400(() => decodeBody(kind, { headers: {}, body }));
  });
});

function expectObjectOr400(call: () => { object: { metadata: unknown } }): void {
  try {
    expect(call().object.metadata).toBeTypeOf("object");
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    expect(error.status.code).toBe(400);
  }
}

/** A third of the fields of a definition, with zeros among the values. */
function randomObject(random: Random, schema: ObjectSchema): JsonObject {
  const fields = schema.fields.filter(
    ({ name }) => name !== "kind" && name !== "apiVersion" && chance(random, 0.3),
  );
  return Object.fromEntries(fields.map(({ name, type }) => [name, randomValue(random, type)]));
}

function randomValue(random: Random, type: TypeSchema): Json {
  switch (type.kind) {
    case "object":
      return randomObject(random, type.schema);
    case "list":
      return Array.from({ length: random.int(3) }, () => randomValue(random, type.element));
    case "map":
      return Object.fromEntries(
        Array.from({ length: random.int(3) }, () => [randomText(random), randomValue(random, type.value)]),
      );
    case "scalar":
      return randomScalar(random, type.scalar);
  }
}

const TEXTS = ["", "a", "x/y", "äöü", "\u0000", "__proto__", "long ".repeat(50)];

function randomText(random: Random): string {
  return pick(random, TEXTS) + (chance(random, 0.5) ? String(random.int(100)) : "");
}

function randomScalar(random: Random, scalar: ScalarKind): Json {
  switch (scalar) {
    case "string":
      return randomText(random);
    case "boolean":
      return chance(random, 0.5);
    case "int32":
      return pick(random, [0, 1, -1, 2 ** 31 - 1, -(2 ** 31)]);
    case "int64":
      return pick(random, [0, 1, -1, 2n ** 53n + 1n, -(2n ** 53n), 2n ** 62n + 1n, -(2n ** 63n)]);
    case "intOrString":
      return pick<string | number>(random, [0, 8080, "http", "10%"]);
    case "quantity":
      return pick(random, ["0", "1Gi", "1024Mi", "1500m", "0.1", "-5", "1e3", "12345678901234567890"]);
    case "bytes":
      return Buffer.from(randomText(random)).toString("base64");
    case "time":
      return pick(random, ["2026-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z"]);
    case "microTime":
      return pick(random, ["2026-01-01T00:00:00.123456Z", "1970-01-01T00:00:00.000000Z"]);
    case "fieldsV1":
      return pick(random, [{}, { "f:data": { "f:k": {} } }]);
    case "raw":
      return null;
  }
}

function randomJson(random: Random, depth: number): Json {
  if (depth === 0 || chance(random, 0.3))
    return pick<Json>(random, [null, true, 1.5, 'a"b', "a:b", "{", "\\", ""]);
  const items = Array.from({ length: random.int(5) }, () => randomJson(random, depth - 1));
  return chance(random, 0.5)
    ? items
    : Object.fromEntries(
        items.map((item, at) => [`${pick(random, ["k", 'k"', "k\\", "k:", "[k"])}${at}`, item]),
      );
}
