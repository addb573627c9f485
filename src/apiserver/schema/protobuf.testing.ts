import type { Json, JsonObject } from "../../kube/patch/json.ts";
import { isJsonObject } from "../../kube/patch/json.ts";
import { zeroOf } from "./scalars.ts";
import {
  knownSchema,
  type GroupVersionKind,
  type ObjectSchema,
  type ScalarKind,
  type TypeSchema,
} from "./schema.ts";

/**
 * For tests: protobuf as Go clients write it, which is what the decoder has to cope with. Every field that is no
 * pointer is written, zero or not; what JSON flattens is a message of its own.
 */
export function encodeProtobuf(kind: GroupVersionKind, object: JsonObject): Buffer {
  const apiVersion = kind.group === "" ? kind.version : `${kind.group}/${kind.version}`;
  const type = Buffer.concat([bytesField(1, Buffer.from(apiVersion)), bytesField(2, Buffer.from(kind.kind))]);
  return Buffer.concat([
    Buffer.from("k8s\0"),
    bytesField(1, type),
    bytesField(2, encodeMessage(knownSchema(kind), object)),
    bytesField(3, Buffer.alloc(0)),
    bytesField(4, Buffer.alloc(0)),
  ]);
}

export function bytesField(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

export function varintField(number: number, value: number | bigint): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}

function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

function encodeMessage(schema: ObjectSchema, object: JsonObject): Buffer {
  const { fields, inlined } = schema.protobuf;
  const parts = [...fields].map(([number, { name, type, isPointer }]) => {
    const value = object[name] ?? null;
    if (value !== null) return encodeField(number, type, value);
    if (isPointer || type.kind === "list" || type.kind === "map") return Buffer.alloc(0);
    return encodeField(number, type, type.kind === "object" ? {} : zeroOf(type.scalar));
  });
  const inner = [...inlined].map(([number, part]) => bytesField(number, encodeMessage(part, object)));
  return Buffer.concat([...parts, ...inner]);
}

function encodeField(number: number, type: TypeSchema, value: Json): Buffer {
  if (type.kind === "list") {
    return Buffer.concat((value as Json[]).map((item) => encodeField(number, type.element, item)));
  }
  if (type.kind === "map") {
    const entries = Object.entries(value as JsonObject).map(([key, member]) =>
      Buffer.concat([bytesField(1, Buffer.from(key)), encodeMapValue(type.value, member ?? null)]),
    );
    return Buffer.concat(entries.map((entry) => bytesField(number, entry)));
  }
  if (type.kind === "object") {
    return bytesField(number, encodeMessage(type.schema, isJsonObject(value) ? value : {}));
  }
  return encodeScalar(number, type.scalar, value);
}

function encodeMapValue(type: TypeSchema, value: Json): Buffer {
  return type.kind === "list" ? bytesField(2, encodeField(1, type, value)) : encodeField(2, type, value);
}

function encodeScalar(number: number, scalar: ScalarKind, value: Json): Buffer {
  switch (scalar) {
    case "boolean":
    case "int32":
    case "int64":
      return varintField(number, typeof value === "bigint" ? value : Number(value));
    case "string":
      return bytesField(number, Buffer.from(value as string));
    case "bytes":
      return bytesField(number, Buffer.from(value as string, "base64"));
    case "quantity":
      return bytesField(number, bytesField(1, Buffer.from(value as string)));
    case "intOrString":
      return bytesField(number, encodeIntOrString(value as string | number));
    case "time":
    case "microTime":
      return bytesField(number, value === null ? Buffer.alloc(0) : encodeTime(value as string));
    case "fieldsV1":
    case "raw":
      return bytesField(number, bytesField(1, Buffer.from(JSON.stringify(value))));
  }
}

function encodeIntOrString(value: string | number): Buffer {
  const [type, int, text] = typeof value === "string" ? [1, 0, value] : [0, value, ""];
  return Buffer.concat([varintField(1, type), varintField(2, int), bytesField(3, Buffer.from(text))]);
}

function encodeTime(text: string): Buffer {
  const micros = Number((/\.(\d{6})/.exec(text) ?? ["", "0"])[1]);
  return Buffer.concat([varintField(1, Math.floor(Date.parse(text) / 1000)), varintField(2, micros * 1000)]);
}
