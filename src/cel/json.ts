import { evaluationError } from "./errors.ts";
import { toInt, Uint } from "./numbers.ts";
import { formatDuration, formatTimestamp } from "./time.ts";
import { Duration, isList, MapValue, ObjectValue, OptionalValue, Timestamp, type Value } from "./values.ts";

/**
 * JSON as a value. Whole numbers are ints, as they are in the objects of the API. An object is wrapped, not copied: of
 * a large one an expression looks at a few fields.
 */
export function fromJson(json: unknown): Value {
  if (typeof json === "string" || typeof json === "boolean") return json;
  if (typeof json === "bigint") return toInt(json) ?? Number(json);
  if (typeof json === "number") return Number.isInteger(json) ? (toInt(BigInt(json)) ?? json) : json;
  if (typeof json !== "object" || json === null) return null;
  return Array.isArray(json) ? json.map(fromJson) : new JsonMap(json);
}

/** Keys are data: only what the object itself has is there. */
class JsonMap extends MapValue {
  readonly #object: object;
  #keys: readonly string[] | undefined;
  readonly #known = new Map<string, Value>();

  constructor(object: object) {
    super();
    this.#object = object;
  }

  get size(): number {
    return this.keys().length;
  }

  get(key: Value): Value | undefined {
    if (typeof key !== "string") return undefined;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    if (!Object.hasOwn(this.#object, key)) return undefined;
    const member = (this.#object as Readonly<Record<string, unknown>>)[key];
    if (member === undefined) return undefined;
    const value = fromJson(member);
    this.#known.set(key, value);
    return value;
  }

  override keys(): readonly string[] {
    this.#keys ??= Object.entries(this.#object).flatMap(([key, member]) =>
      member === undefined ? [] : [key],
    );
    return this.#keys;
  }
}

/** A value as JSON, for a patch; throws at what JSON has no form for. */
export function toJson(value: Value): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "bigint") return shortest(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw evaluationError(`no JSON for the double ${value}`);
    return value;
  }
  if (value instanceof Uint) return shortest(value.value);
  if (isList(value)) return value.map(toJson);
  if (value instanceof MapValue) return mapToJson(value);
  if (value instanceof ObjectValue) {
    return Object.fromEntries([...value.fields].map(([name, field]) => [name, toJson(field)]));
  }
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return formatDuration(value);
  if (value instanceof OptionalValue && value.value !== undefined) return toJson(value.value);
  throw evaluationError("a value has no form in JSON");
}

function mapToJson(map: MapValue): object {
  return Object.fromEntries(
    Array.from(map.keys(), (key) => {
      if (typeof key !== "string")
        throw evaluationError("a map has a key that is not a string, which JSON has no form for");
      return [key, toJson(map.get(key) ?? null)];
    }),
  );
}

/** As the server's parser has it: a bigint only where a number would lose digits. */
function shortest(value: bigint): number | bigint {
  const short = Number(value);
  return Number.isSafeInteger(short) ? short : value;
}
