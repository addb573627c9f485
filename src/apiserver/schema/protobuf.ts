import { parseJson } from "../../kube/json-text.ts";
import { isKubeError } from "../../kube/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { formatTime } from "../../kube/time.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { setMember } from "./decode.ts";
import { ProtobufReader, WIRE } from "./protobuf-reader.ts";
import type { FieldSchema, ObjectSchema, ScalarKind, TypeSchema } from "./schema.ts";

/**
 * Bodies of Go clients (spec/apiserver.md, section 4.3): four magic bytes, an envelope that names the type,
 * and in it the object. Decoding makes of it the JSON the same client would have sent, so that everything
 * behind is the same for both: decode.ts then drops the zeros that Go's encoder writes for every
 * field that is no pointer, and canonicalises.
 *
 * Fields are known by the table; a number it does not have is skipped, for clients newer than we are.
 * Depth is bounded by the table itself, which has no cycles: what is unknown is never entered.
 */
export interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  /** The object, to be read by the definition of its kind. */
  readonly raw: Buffer;
}

const MAGIC = Buffer.from("k8s\0");

export function readEnvelope(body: Uint8Array): Envelope {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (bytes.length === 0) throw new DecodeFailure("empty data");
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new DecodeFailure(
      `provided data does not appear to be a protobuf message, expected prefix [${[...MAGIC].join(" ")}]`,
    );
  }
  const reader = new ProtobufReader(bytes, MAGIC.length);
  let type = { apiVersion: "", kind: "" };
  let raw = bytes.subarray(0, 0);
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) type = readType(reader.message());
    else if (reader.fieldNumber === 2) raw = reader.bytes();
    else reader.skip();
  }
  return { ...type, raw };
}

export function decodeMessage(schema: ObjectSchema, bytes: Buffer): JsonObject {
  const members: Members = {};
  readMessage(new ProtobufReader(bytes), schema, members);
  return members;
}

/** An object under construction. */
type Members = Record<string, Json>;

function readType(reader: ProtobufReader): { apiVersion: string; kind: string } {
  let [apiVersion, kind] = ["", ""];
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) apiVersion = reader.text();
    else if (reader.fieldNumber === 2) kind = reader.text();
    else reader.skip();
  }
  return { apiVersion, kind };
}

function readMessage(reader: ProtobufReader, schema: ObjectSchema, members: Members): void {
  const { fields, inlined } = schema.protobuf;
  while (reader.nextField()) {
    const field = fields.get(reader.fieldNumber);
    if (field !== undefined) {
      readField(reader, field, members);
      continue;
    }
    const inner = inlined.get(reader.fieldNumber);
    if (inner === undefined) reader.skip();
    else readMessage(reader.message(), inner, members);
  }
}

/** A field may come several times: lists and maps grow, messages merge, of scalars the last counts. */
function readField(reader: ProtobufReader, { name, type }: FieldSchema, members: Members): void {
  switch (type.kind) {
    case "list":
      readElement(reader, type.element, listIn(members, name));
      return;
    case "map":
      readEntry(reader.message(), type.value, objectIn(members, name));
      return;
    case "object":
      readMessage(reader.message(), type.schema, objectIn(members, name));
      return;
    case "scalar":
      members[name] = readScalar(reader, type.scalar);
  }
}

function readElement(reader: ProtobufReader, type: TypeSchema, list: Json[]): void {
  const isNumber = type.kind === "scalar" && (type.scalar === "int32" || type.scalar === "int64");
  if (isNumber && reader.wireType === WIRE.bytes) {
    const packed = reader.message();
    while (!packed.isEmpty) list.push(packed.packedInt64());
    return;
  }
  list.push(readValue(reader, type));
}

function readEntry(reader: ProtobufReader, type: TypeSchema, map: Members): void {
  let key = "";
  let value: Json | undefined;
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) key = reader.text();
    else if (reader.fieldNumber === 2) value = readValue(reader, type);
    else reader.skip();
  }
  setMember(map, key, value ?? null);
}

function readValue(reader: ProtobufReader, type: TypeSchema): Json {
  switch (type.kind) {
    case "object": {
      const members: Members = {};
      readMessage(reader.message(), type.schema, members);
      return members;
    }
    case "list":
      return readItems(reader.message(), type.element);
    case "map":
      throw new DecodeFailure("proto: a map within a list or map is not a thing of the API");
    case "scalar":
      return readScalar(reader, type.scalar);
  }
}

/** A list as the value of a map is a message of its own in protobuf, with the elements as field 1. */
function readItems(reader: ProtobufReader, element: TypeSchema): Json {
  const items: Json[] = [];
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) readElement(reader, element, items);
    else reader.skip();
  }
  return items;
}

function readScalar(reader: ProtobufReader, kind: ScalarKind): Json {
  switch (kind) {
    case "string":
      return reader.text();
    case "boolean":
      return reader.bool();
    case "int32":
      return reader.int32();
    case "int64":
      return reader.int64();
    case "bytes":
      return reader.base64();
    case "quantity":
      return readQuantity(reader.message());
    case "intOrString":
      return readIntOrString(reader.message());
    case "time":
      return readTime(reader.message(), (_micros) => "Z");
    case "microTime":
      return readTime(reader.message(), (micros) => `.${String(micros).padStart(6, "0")}Z`);
    // JSON of whatever shape, as the only field of a message.
    case "fieldsV1":
    case "raw":
      return readJson(reader.message());
  }
}

function readQuantity(reader: ProtobufReader): Json {
  let text = "0";
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) text = reader.text();
    else reader.skip();
  }
  return text;
}

function readIntOrString(reader: ProtobufReader): Json {
  let [isText, int, text] = [false, 0, ""];
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) isText = reader.int64() === 1;
    else if (reader.fieldNumber === 2) int = reader.int32();
    else if (reader.fieldNumber === 3) text = reader.text();
    else reader.skip();
  }
  return isText ? text : int;
}

/** No bytes at all are no time; `0 s` is 1970. */
function readTime(reader: ProtobufReader, ending: (micros: number) => string): Json {
  if (reader.isEmpty) return null;
  let [seconds, nanos] = [0, 0];
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) seconds = Number(reader.int64());
    else if (reader.fieldNumber === 2) nanos = reader.int32();
    else reader.skip();
  }
  const micros = Math.floor(nanos / 1000);
  if (micros < 0 || micros >= 1_000_000)
    throw new DecodeFailure(`proto: ${nanos} nanoseconds are not a fraction of a second`);
  try {
    return `${formatTime(new Date(seconds * 1000)).slice(0, -1)}${ending(micros)}`;
  } catch (error) {
    if (!isKubeError(error, "BadInput")) throw error;
    throw new DecodeFailure(`proto: ${seconds} seconds since 1970 are outside the years 0 to 9999`);
  }
}

/** JSON within protobuf, written by clients that pass on what they have read. */
function readJson(reader: ProtobufReader): Json {
  let text = "";
  while (reader.nextField()) {
    if (reader.fieldNumber === 1) text = reader.text();
    else reader.skip();
  }
  if (text === "") return null;
  try {
    return parseJson(text) as Json;
  } catch (error) {
    throw new DecodeFailure(`json: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function listIn(members: Members, name: string): Json[] {
  const list = members[name];
  if (Array.isArray(list)) return list as Json[];
  const created: Json[] = [];
  members[name] = created;
  return created;
}

function objectIn(members: Members, name: string): Members {
  const object = members[name];
  if (object !== undefined && isJsonObject(object)) return object as Members;
  const created: Members = {};
  members[name] = created;
  return created;
}
