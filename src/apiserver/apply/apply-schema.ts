import type { Json } from "../../kube/patch/json.ts";
import { zeroOf } from "../schema/scalars.ts";
import {
  knownSchema,
  type FieldSchema,
  type GroupVersionKind,
  type ObjectSchema,
  type TypeSchema,
} from "../schema/schema.ts";

/**
 * What tracking and apply must know about a value, and nothing else: what its parts are, and whether they are owned
 * one by one. An atomic value is one field, however much it holds.
 */
export type ApplySchema = ScalarSchema | StructSchema | MapSchema | ListSchema;

interface ScalarSchema {
  readonly kind: "scalar";
  readonly isAtomic: true;
  /** JSON that is passed on without a look inside: one value, though it may be an object. */
  readonly isOpaque: boolean;
}

/** An object with known fields. */
export interface StructSchema {
  readonly kind: "struct";
  readonly isAtomic: boolean;
  field(name: string): ApplySchema | undefined;
  /**
   * Fields that are there even when nobody wrote them, and what they hold then. The real server compares Go structs,
   * in which they always exist: so `spec` as such never appears, and `attached: false` is no change.
   */
  readonly emitted: ReadonlyMap<string, Json>;
  /** Fields that nobody owns. */
  readonly untracked: ReadonlySet<string>;
}

/** An object whose keys are data. */
interface MapSchema {
  readonly kind: "map";
  readonly isAtomic: boolean;
  readonly element: ApplySchema;
}

export interface ListSchema {
  readonly kind: "list";
  readonly isAtomic: boolean;
  readonly element: ApplySchema;
  /** What tells elements apart, by name; empty where they are scalars that tell themselves apart. */
  readonly keys: readonly ListKey[];
}

interface ListKey {
  readonly name: string;
  /** Taken where an element does not say, as `protocol: TCP` of a port. */
  readonly default: Json | undefined;
}

/** Never tracked in the metadata of an object; the metadata of a template inside one has no such exceptions. */
const UNTRACKED_METADATA = new Set([
  "name",
  "namespace",
  "creationTimestamp",
  "selfLink",
  "uid",
  "generation",
  "managedFields",
  "resourceVersion",
]);
const UNTRACKED_TOP = new Set(["apiVersion", "kind"]);
const TRACKED_ALL: ReadonlySet<string> = new Set();

/** One for a kind, made when it is first written: there are 30. */
const kinds = new Map<ObjectSchema, StructSchema>();

export function applySchemaOf(kind: GroupVersionKind): StructSchema {
  const schema = knownSchema(kind);
  let found = kinds.get(schema);
  if (found === undefined) {
    found = new Struct(schema, { isAtomic: false, isKind: true });
    kinds.set(schema, found);
  }
  return found;
}

/** Compiles a field when somebody goes there: a definition may contain itself. */
class Struct implements StructSchema {
  readonly kind = "struct";
  readonly isAtomic: boolean;
  readonly untracked: ReadonlySet<string>;
  readonly #schema: ObjectSchema;
  readonly #isKind: boolean;
  readonly #fields = new Map<string, ApplySchema>();
  #emitted: ReadonlyMap<string, Json> | undefined;

  constructor(schema: ObjectSchema, { isAtomic, isKind = false, untracked = TRACKED_ALL }: StructOptions) {
    this.#schema = schema;
    this.#isKind = isKind;
    this.isAtomic = isAtomic;
    this.untracked = isKind ? UNTRACKED_TOP : untracked;
  }

  field(name: string): ApplySchema | undefined {
    const known = this.#fields.get(name);
    if (known !== undefined) return known;
    const field = this.#schema.field(name);
    if (field === undefined) return undefined;
    const isMetadata = this.#isKind && name === "metadata";
    const compiled = isMetadata ? metadataOf(field) : fieldSchemaOf(field);
    this.#fields.set(name, compiled);
    return compiled;
  }

  get emitted(): ReadonlyMap<string, Json> {
    return (this.#emitted ??= new Map(
      this.#schema.fields
        .filter(({ isEmitted, name }) => isEmitted && !this.untracked.has(name))
        .map((field) => [field.name, emptyOf(field)]),
    ));
  }
}

interface StructOptions {
  readonly isAtomic: boolean;
  readonly isKind?: boolean;
  readonly untracked?: ReadonlySet<string>;
}

const SCALAR: ScalarSchema = { kind: "scalar", isAtomic: true, isOpaque: false };
const OPAQUE: ScalarSchema = { kind: "scalar", isAtomic: true, isOpaque: true };

/** Definitions that are part of others, by whether they are owned as one value; 258 at most of each. */
const granularStructs = new Map<ObjectSchema, Struct>();
const atomicStructs = new Map<ObjectSchema, Struct>();

function structOf(schema: ObjectSchema, isAtomic: boolean): Struct {
  const cache = isAtomic ? atomicStructs : granularStructs;
  let found = cache.get(schema);
  if (found === undefined) {
    found = new Struct(schema, { isAtomic });
    cache.set(schema, found);
  }
  return found;
}

function metadataOf(field: FieldSchema): ApplySchema {
  if (field.type.kind !== "object") return fieldSchemaOf(field);
  return new Struct(field.type.schema, { isAtomic: false, untracked: UNTRACKED_METADATA });
}

function fieldSchemaOf(field: FieldSchema): ApplySchema {
  const { type } = field;
  if (type.kind === "list") return listSchemaOf(type.element, field);
  return typeSchemaOf(type, field.mapType === "atomic");
}

function typeSchemaOf(type: TypeSchema, isAtomic: boolean): ApplySchema {
  switch (type.kind) {
    case "scalar":
      return type.scalar === "raw" ? OPAQUE : SCALAR;
    case "object":
      return structOf(type.schema, isAtomic);
    case "map":
      return { kind: "map", isAtomic, element: elementSchemaOf(type.value) };
    case "list":
      return { kind: "list", isAtomic: true, element: elementSchemaOf(type.element), keys: [] };
  }
}

/** What is in a list or map has only its own definition to say how it is owned. */
function elementSchemaOf(type: TypeSchema): ApplySchema {
  return typeSchemaOf(type, type.kind === "object" && type.schema.mapType === "atomic");
}

function listSchemaOf(element: TypeSchema, { listType, listMapKeys }: FieldSchema): ListSchema {
  const keys = [...listMapKeys].sort().map((name) => ({
    name,
    default:
      element.kind === "object" ? (element.schema.field(name)?.default as Json | undefined) : undefined,
  }));
  return {
    kind: "list",
    isAtomic: listType === "atomic",
    element: elementSchemaOf(element),
    keys: listType === "map" ? keys : [],
  };
}

/** What Go writes for a field that nobody set. */
function emptyOf({ type, isPointer }: FieldSchema): Json {
  if (isPointer || type.kind === "list" || type.kind === "map") return null;
  return type.kind === "object" ? {} : zeroOf(type.scalar);
}
