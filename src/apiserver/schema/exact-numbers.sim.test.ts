import { expect, test } from "vitest";
import { assert } from "../../base/assert.ts";
import type { Random } from "../../base/random.ts";
import { exactInteger, formatJson, parseJson } from "../../kube/json-text.ts";
import type { Json, JsonObject } from "../../kube/patch/json.ts";
import { forSeeds } from "../../sim/seeds.ts";
import { KINDS, type Kind } from "../kinds.ts";
import { toYaml } from "../negotiate/yaml.ts";
import { renderObject } from "../objects.ts";
import { decodeBody } from "./body.ts";
import { encodeProtobuf } from "./protobuf.testing.ts";
import { knownSchema, type ObjectSchema, type ScalarKind, type TypeSchema } from "./schema.ts";

/** A field that holds a number of 64 bits, and how to make an object around its value. */
interface NumberField {
  readonly kind: Kind;
  readonly path: string;
  readonly scalar: ScalarKind;
  readonly wrap: (value: Json) => JsonObject;
}

const NUMBERS: ReadonlySet<ScalarKind> = new Set(["int64", "quantity", "raw", "fieldsV1"]);

/** Every such field there is: of each definition in the first kind that leads to it. */
const seen = new Set<string>();
const FIELDS = KINDS.flatMap((kind) => {
  function within(
    schema: ObjectSchema,
    path: string,
    wrap: (value: JsonObject) => JsonObject,
  ): NumberField[] {
    if (seen.has(schema.name)) return [];
    seen.add(schema.name);
    return schema.fields.flatMap(({ name, type }) =>
      through(type, `${path}.${name}`, (value) => wrap({ [name]: value })),
    );
  }

  function through(type: TypeSchema, path: string, wrap: (value: Json) => JsonObject): NumberField[] {
    switch (type.kind) {
      case "object":
        return within(type.schema, path, wrap);
      case "list":
        return through(type.element, `${path}[]`, (value) => wrap([value]));
      case "map":
        return through(type.value, `${path}{}`, (value) => wrap({ k: value }));
      case "scalar":
        return NUMBERS.has(type.scalar) ? [{ kind, path, scalar: type.scalar, wrap }] : [];
    }
  }

  return within(knownSchema(kind), kind.kind, (value) => value);
});

test("there are such fields of each sort", () => {
  for (const [scalar, count] of [
    ["int64", 20],
    ["quantity", 5],
    ["raw", 1],
    ["fieldsV1", 1],
  ] as const) {
    const found = FIELDS.filter((field) => field.scalar === scalar);
    expect(found.length, scalar).toBeGreaterThanOrEqual(count);
  }
});

test("every 64-bit number comes out of every field as it went in, from JSON, YAML and protobuf", async () => {
  await forSeeds(3, (random) => {
    for (const field of FIELDS) {
      const number = randomInt64(random);
      const { kind, scalar } = field;
      const body = formatJson(field.wrap(valueOf(scalar, number)));

      const shown = (type: string, given: string | Buffer) => {
        const { object } = decodeBody(kind, { headers: { "content-type": type }, body: given });
        return renderObject(kind, object, 1);
      };
      const expected = scalar === "quantity" ? `"${shownQuantity(number)}"` : String(number);
      const text = shown("application/json", body);
      expect(text, `${field.path} ${number}`).toContain(expected);
      expect(shown("application/yaml", toYaml(body)), field.path).toBe(text);
      expect(formatJson(parseJson(text)), field.path).toBe(text);
      if (scalar !== "int64" || knownSchema(kind).isCustom) continue;
      const bytes = encodeProtobuf(kind, field.wrap(exactInteger(number)));
      expect(shown("application/vnd.kubernetes.protobuf", bytes), field.path).toBe(text);
    }
  });
});

test("one more than fits into 64 bits is refused, with its digits", () => {
  for (const { kind, wrap, path } of FIELDS.filter(({ scalar }) => scalar === "int64")) {
    for (const number of [2n ** 63n, -(2n ** 63n) - 1n]) {
      const decode = () => decodeBody(kind, { headers: {}, body: formatJson(wrap(number)) });
      expect(decode, path).toThrow(`cannot unmarshal number ${number} into`);
    }
  }
});

function valueOf(scalar: ScalarKind, number: bigint): Json {
  return scalar === "raw" || scalar === "fieldsV1" ? { deep: [exactInteger(number)] } : exactInteger(number);
}

/** A quantity drops its zeros for a suffix; the numbers of this test end in none. */
function shownQuantity(number: bigint): string {
  assert(number % 10n !== 0n, `${number} would be written with a suffix`);
  return String(number);
}

/** Of any length, with the edges; none that a quantity would write with a suffix, and no zero. */
function randomInt64(random: Random): bigint {
  const bits = 1 + random.int(63);
  const high = BigInt(random.int(2 ** 31)) << 32n;
  const value = BigInt.asUintN(bits, high | (BigInt(random.int(2 ** 31)) << 1n) | 1n);
  const edge = [2n ** 63n - 1n, -(2n ** 63n) + 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n][random.int(16)];
  const chosen = edge ?? (random.int(2) === 0 ? value : -value);
  return chosen % 10n === 0n || chosen % 5n === 0n ? chosen + 2n : chosen;
}
