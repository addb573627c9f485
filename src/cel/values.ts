import { evaluationError } from "./errors.ts";
import { Uint } from "./numbers.ts";

/**
 * What an expression works with. Ints are bigint, doubles number, the rest of JSON itself; everything JSON does not
 * have is a class. Nothing here is ever changed.
 */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | readonly Value[]
  | Uint
  | MapValue
  | Timestamp
  | Duration
  | TypeValue
  | OptionalValue
  | ObjectValue
  | OpaqueValue;

/** Keys are strings, bools or whole numbers; 1, 1u and 1.0 are one key. */
export abstract class MapValue {
  abstract readonly size: number;
  abstract get(key: Value): Value | undefined;
  abstract keys(): Iterable<Value>;
}

/** Nanoseconds since 1970. */
export class Timestamp {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Duration {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** A type as a value: what `type(x)` returns, and what `int` is when nobody calls it. */
export class TypeValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

export class OptionalValue {
  /** Undefined: there is none. */
  readonly value: Value | undefined;

  constructor(value: Value | undefined) {
    this.value = value;
  }
}

export const NONE = new OptionalValue(undefined);

/** Made by `Type{field: value}`. */
export class ObjectValue {
  readonly type: string;
  readonly fields: ReadonlyMap<string, Value>;

  constructor(type: string, fields: ReadonlyMap<string, Value>) {
    this.type = type;
    this.fields = fields;
  }
}

/** A value of a library, such as a URL: its functions look inside, nobody else does. */
export abstract class OpaqueValue {
  abstract readonly type: string;
  abstract equals(other: OpaqueValue): boolean;
}

/** Of a map literal, or of a macro that makes a map. */
export class BuiltMap extends MapValue {
  readonly #entries: ReadonlyMap<string, readonly [Value, Value]>;

  /** By `mapKey`. */
  constructor(entries: ReadonlyMap<string, readonly [Value, Value]>) {
    super();
    this.#entries = entries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Value): Value | undefined {
    const found = mapKey(key);
    return found === undefined ? undefined : this.#entries.get(found)?.[1];
  }

  keys(): Iterable<Value> {
    return Array.from(this.#entries.values(), ([key]) => key);
  }
}

/** One text for keys that are equal; undefined of what equals no key. */
export function mapKey(value: Value): string | undefined {
  if (typeof value === "string") return `s${value}`;
  if (typeof value === "boolean") return `b${value}`;
  if (typeof value === "bigint") return `n${value}`;
  if (typeof value === "number") return Number.isInteger(value) ? `n${BigInt(value)}` : undefined;
  return value instanceof Uint ? `n${value.value}` : undefined;
}

/** Refuses what is no key, and the same key twice. */
export function addEntry(built: Map<string, readonly [Value, Value]>, key: Value, value: Value): void {
  const name = typeof key === "number" ? undefined : mapKey(key);
  if (name === undefined) throw evaluationError("unsupported key type");
  if (built.has(name)) throw evaluationError(`insert failed: key ${name.slice(1)} already exists`);
  built.set(name, [key, value]);
}

export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

/** The name of its type, as `type(x)` shows it. */
export function typeName(value: Value): string {
  if (value === null) return "null_type";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "double";
  if (typeof value === "string") return "string";
  return objectTypeName(value);
}

function objectTypeName(value: Exclude<Value, null | boolean | bigint | number | string>): string {
  if (isList(value)) return "list";
  if (value instanceof Uint8Array) return "bytes";
  if (value instanceof Uint) return "uint";
  if (value instanceof MapValue) return "map";
  if (value instanceof Timestamp) return "google.protobuf.Timestamp";
  if (value instanceof Duration) return "google.protobuf.Duration";
  if (value instanceof TypeValue) return "type";
  if (value instanceof OptionalValue) return "optional_type";
  return value.type;
}

/** Characters as CEL counts them: code points, not halves of them. */
export function codePoints(text: string): string[] {
  return Array.from(text);
}
