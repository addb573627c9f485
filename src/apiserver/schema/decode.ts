import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { addProblem, formatPath, type PathSegment } from "./problems.ts";
import { decodeResource, decodeScalar, zeroOf } from "./scalars.ts";
import type { FieldSchema, ObjectSchema, ScalarKind, TypeSchema } from "./schema.ts";

/**
 * Reads JSON as an object of a definition, the way Go's decoder and encoder together would have
 * (spec/apiserver.md, section 6). What comes out is the *short form*:
 *
 * - every field is known and of its type; unknown ones are left out, and named in `unknown`;
 * - `null`, and a zero in a field that is no pointer, are absent; so are empty lists, maps and objects there;
 * - quantities, times and base64 have their canonical spelling.
 *
 * Two bodies that mean the same have the same short form, so a write that changes nothing is seen as
 * such. `completeObject` of complete.ts makes of it what goes over the wire.
 *
 * Nothing of the input is changed. Keys keep their order. `__proto__` is a key like any other.
 */
export interface Decoded {
  readonly object: JsonObject;
  /** Paths, in the order of the text. */
  readonly unknown: readonly string[];
}

export function decodeFields(schema: ObjectSchema, value: unknown): Decoded {
  const decoder = new Decoder(schema);
  try {
    return { object: decoder.object(schema, value), unknown: decoder.unknown };
  } catch (error) {
    if (error instanceof DecodeFailure) error.path = decoder.path();
    throw error;
  }
}

class Decoder {
  readonly unknown: string[] = [];
  readonly #root: ObjectSchema;
  readonly #path: PathSegment[] = [];

  constructor(root: ObjectSchema) {
    this.#root = root;
  }

  /** Where it is: after a failure, where it failed. */
  path(): string {
    return formatPath(this.#path);
  }

  object(schema: ObjectSchema, value: unknown): JsonObject {
    if (!isJsonObject(value)) throw this.#mismatch(value);
    const members: Record<string, Json> = {};
    const path = this.#path;
    for (const key of Object.keys(value)) {
      const field = schema.field(key);
      path.push(key);
      if (field === undefined) {
        addProblem(this.unknown, formatPath(path));
      } else {
        const member = this.#field(field, value[key]);
        if (member !== undefined) members[key] = member;
      }
      path.pop();
    }
    return members;
  }

  /** Undefined for what is as good as absent. */
  #field({ type, isPointer }: FieldSchema, value: unknown): Json | undefined {
    if (value === null || value === undefined) return undefined;
    const decoded = this.#value(type, value);
    if (decoded === null || (!isPointer && isZero(type, decoded))) return undefined;
    return decoded;
  }

  #value(type: TypeSchema, value: unknown): Json {
    switch (type.kind) {
      case "object":
        return this.object(type.schema, value);
      case "list":
        return this.#list(type.element, value);
      case "map":
        return this.#map(type.value, value);
      case "scalar": {
        const scalar = decodeScalar(type.scalar, value);
        if (scalar === undefined) throw this.#mismatch(value);
        return scalar;
      }
    }
  }

  #list(element: TypeSchema, value: unknown): Json {
    if (!isJsonList(value)) throw this.#mismatch(value);
    return value.map((item, index) => {
      this.#path.push(index);
      const decoded = item === null ? zero(element) : this.#value(element, item);
      this.#path.pop();
      return decoded;
    });
  }

  #map(type: TypeSchema, value: unknown): Json {
    if (!isJsonObject(value)) throw this.#mismatch(value);
    const members: Record<string, Json> = {};
    for (const key of Object.keys(value)) {
      this.#path.push(key);
      setMember(members, key, this.#mapValue(type, value[key] ?? null));
      this.#path.pop();
    }
    return members;
  }

  /** A null in a map is the zero of its type in Go, unlike one in a field. */
  #mapValue(type: TypeSchema, value: Json): Json {
    if (value === null) return zero(type);
    if (type.kind !== "scalar" || type.scalar !== "quantity") return this.#value(type, value);
    const resource = decodeResource(value);
    if (resource === undefined) throw this.#mismatch(value);
    return resource;
  }

  /** In the words of Go, which names the struct and the path of fields without indexes and map keys. */
  #mismatch(value: unknown): DecodeFailure {
    let type: TypeSchema = { kind: "object", schema: this.#root };
    let owner = "";
    const fields: string[] = [];
    for (const segment of this.#path) {
      if (type.kind === "list") type = type.element;
      else if (type.kind === "map") type = type.value;
      else if (type.kind === "object") {
        owner = shortName(type.schema);
        fields.push(String(segment));
        type = type.schema.field(String(segment))?.type ?? { kind: "scalar", scalar: "raw" };
      }
    }
    const where = owner === "" ? "Go value" : `Go struct field ${owner}.${fields.join(".")}`;
    return new DecodeFailure(
      `json: cannot unmarshal ${describe(value, type)} into ${where} of type ${goType(type)}`,
    );
  }
}

/** Assigning to `__proto__` would change the prototype instead of adding a member. */
export function setMember(members: Record<string, Json>, key: string, value: Json): void {
  if (key !== "__proto__") members[key] = value;
  else Object.defineProperty(members, key, { value, enumerable: true, configurable: true, writable: true });
}

function isZero(type: TypeSchema, value: Json): boolean {
  if (type.kind === "scalar") return value === zeroOf(type.scalar);
  return isJsonList(value) ? value.length === 0 : isJsonObject(value) && isEmpty(value);
}

/** Without making a list of the keys: this runs for every object of every body. */
function isEmpty(object: JsonObject): boolean {
  for (const _key in object) return false;
  return true;
}

function zero(type: TypeSchema): Json {
  switch (type.kind) {
    case "object":
    case "map":
      return {};
    case "list":
      return [];
    case "scalar":
      return zeroOf(type.scalar);
  }
}

function describe(value: unknown, wanted: TypeSchema): string {
  if (isJsonList(value)) return "array";
  if (isJsonObject(value)) return "object";
  if (typeof value === "boolean") return "bool";
  // A number where one belongs: its value must be the trouble.
  const isInt = wanted.kind === "scalar" && (wanted.scalar === "int32" || wanted.scalar === "int64");
  if (typeof value !== "number" && typeof value !== "bigint") return typeof value;
  return isInt ? `number ${value}` : "number";
}

function goType(type: TypeSchema): string {
  switch (type.kind) {
    case "object":
      return `v1.${shortName(type.schema)}`;
    case "list":
      return `[]${goType(type.element)}`;
    case "map":
      return `map[string]${goType(type.value)}`;
    case "scalar":
      return GO_SCALARS[type.scalar] ?? type.scalar;
  }
}

const GO_SCALARS: Readonly<Partial<Record<ScalarKind, string>>> = { boolean: "bool", bytes: "[]uint8" };

function shortName({ name }: ObjectSchema): string {
  return name.slice(name.lastIndexOf(".") + 1);
}
