import { assert } from "../../base/assert.ts";
import { SNAPSHOT_DEFINITIONS } from "./snapshot-fields.ts";
import { TABLES } from "../field-tables/tables.ts";

/**
 * Typed access to the field table: what a kind consists of, down to its last scalar. Decoding, protobuf,
 * patches, server-side apply and the OpenAPI documents all read it here and nowhere else, so they cannot
 * disagree about a field.
 *
 * The table of a package is parsed when one of its kinds is asked for and each definition is compiled when it is
 * first reached: a server that sees no Pods never compiles the 160 definitions of one.
 */
export interface GroupVersionKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** One definition: an object with known fields. */
export interface ObjectSchema {
  /** As OpenAPI names it: `io.k8s.api.core.v1.PodSpec`. */
  readonly name: string;
  /** In the order they are written: that of their protobuf numbers, which is nearly that of the Go types. */
  readonly fields: readonly FieldSchema[];
  field(name: string): FieldSchema | undefined;
  /** Whether server-side apply owns such an object as one value, unless the field that holds it says otherwise. */
  readonly mapType: MapType;
  /** The kinds that look like this; empty for definitions that are only part of others. */
  readonly kinds: readonly GroupVersionKind[];
  /** A custom resource, as the snapshot kinds are: no protobuf, no strategic merge patches. */
  readonly isCustom: boolean;
  readonly protobuf: ProtobufSchema;
}

export interface FieldSchema {
  readonly name: string;
  readonly type: TypeSchema;
  /** An explicit zero means something else than absence. */
  readonly isPointer: boolean;
  /** Written even when it is zero, empty or absent. */
  readonly isEmitted: boolean;
  readonly isRequired: boolean;
  readonly default: unknown;
  /** Of a list: how server-side apply merges it. Of anything else "atomic", which changes nothing for a scalar. */
  readonly listType: ListType;
  /** The members that tell elements apart where `listType` is "map"; else empty. */
  readonly listMapKeys: readonly string[];
  /** Of an object or a map: whether server-side apply owns its members one by one. */
  readonly mapType: MapType;
  /** For strategic merge patches. */
  readonly patchStrategies: readonly string[];
  readonly patchMergeKey: string | undefined;
}

export type ListType = "atomic" | "set" | "map";
export type MapType = "granular" | "atomic";

export type TypeSchema =
  | { readonly kind: "scalar"; readonly scalar: ScalarKind }
  | { readonly kind: "object"; readonly schema: ObjectSchema }
  | { readonly kind: "list"; readonly element: TypeSchema }
  | { readonly kind: "map"; readonly value: TypeSchema };

export type ScalarKind = (typeof SCALARS)[number];

/** `fieldsV1` and `raw` are JSON that is passed on without a look inside. */
const SCALARS = [
  "string",
  "boolean",
  "int32",
  "int64",
  "bytes",
  "quantity",
  "intOrString",
  "time",
  "microTime",
  "fieldsV1",
  "raw",
] as const;

/** What a protobuf message of this definition has, by number. */
export interface ProtobufSchema {
  readonly fields: ReadonlyMap<number, FieldSchema>;
  /** Messages of their own in protobuf whose fields JSON has in the parent. */
  readonly inlined: ReadonlyMap<number, ObjectSchema>;
}

/** The table as it is written; keys are short because there are some 2,500 fields. */
export interface RawDefinition {
  readonly fields: Readonly<Record<string, RawField>>;
  readonly gvk?: readonly string[];
  readonly mapType?: MapType;
  readonly pbInline?: readonly { readonly pb: number; readonly type: string }[];
  readonly protoOnly?: 1;
}

interface RawField {
  readonly t: string;
  readonly pb?: number;
  readonly ptr?: 1;
  readonly emit?: 1;
  readonly required?: 1;
  readonly default?: unknown;
  readonly listType?: ListType;
  readonly listMapKeys?: readonly string[];
  readonly mapType?: MapType;
  readonly patchStrategy?: string;
  readonly patchMergeKey?: string;
}

/** Undefined for a kind that is not in the table. */
export function schemaOf({ group, version, kind }: GroupVersionKind): ObjectSchema | undefined {
  const name = names.get(`${group === "" ? version : `${group}/${version}`} ${kind}`);
  return name === undefined ? undefined : definitionOf(name);
}

/** For kinds this server serves, which are all in the table. */
export function knownSchema(kind: GroupVersionKind): ObjectSchema {
  const schema = schemaOf(kind);
  assert(schema !== undefined, `${kind.group}/${kind.version} ${kind.kind} is not in the field table`);
  return schema;
}

/** A definition by its OpenAPI name, for those that are no kinds, such as ListMeta. */
export function definitionOf(name: string): ObjectSchema {
  let schema = compiled.get(name);
  if (schema === undefined) {
    schema = new Definition(name, rawOf(name));
    compiled.set(name, schema);
  }
  return schema;
}

const compiled = new Map<string, ObjectSchema>();

class Definition implements ObjectSchema {
  readonly name: string;
  readonly fields: readonly FieldSchema[];
  readonly mapType: MapType;
  readonly kinds: readonly GroupVersionKind[];
  readonly isCustom: boolean;
  readonly #byName: ReadonlyMap<string, FieldSchema>;
  readonly #raw: RawDefinition;
  #protobuf: ProtobufSchema | undefined;

  constructor(name: string, raw: RawDefinition) {
    this.name = name;
    this.mapType = raw.mapType ?? "granular";
    this.kinds = (raw.gvk ?? []).map(parseKind);
    this.isCustom = Object.hasOwn(SNAPSHOT_DEFINITIONS, name);
    this.#raw = raw;
    this.fields = compileFields(raw);
    this.#byName = new Map(this.fields.map((field) => [field.name, field]));
  }

  field(name: string): FieldSchema | undefined {
    return this.#byName.get(name);
  }

  get protobuf(): ProtobufSchema {
    this.#protobuf ??= {
      fields: new Map(
        this.fields.flatMap((field) => {
          const number = this.#raw.fields[field.name]?.pb;
          return number === undefined ? [] : [[number, field]];
        }),
      ),
      inlined: new Map((this.#raw.pbInline ?? []).map(({ pb, type }) => [pb, definitionOf(type.slice(1))])),
    };
    return this.#protobuf;
  }
}

/** `v1 Pod`, `storage.k8s.io/v1 CSINode`. */
function parseKind(text: string): GroupVersionKind {
  const [groupVersion = "", kind = ""] = text.split(" ");
  const slash = groupVersion.indexOf("/");
  return { group: groupVersion.slice(0, Math.max(slash, 0)), version: groupVersion.slice(slash + 1), kind };
}

/**
 * A field that protobuf keeps in an inlined message has its pointer-ness there and nothing of the kind
 * in the parent, so the two descriptions are joined.
 */
function compileFields(raw: RawDefinition): FieldSchema[] {
  const inlined = new Map(
    (raw.pbInline ?? []).flatMap(({ pb, type }) =>
      Object.entries(rawOf(type.slice(1)).fields).map(([name, field]) => [name, { ...field, pb }] as const),
    ),
  );
  return Object.entries(raw.fields)
    .map(([name, field]) => [name, { ...inlined.get(name), ...field }] as const)
    .map(([name, field], index) => ({ field: compileField(name, field), rank: rankOf(name, field), index }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index)
    .map(({ field }) => field);
}

/** `kind` and `apiVersion` go first: list items are cut out of the stored text right behind them. */
function rankOf(name: string, { pb }: RawField): number {
  if (pb !== undefined) return pb;
  if (name === "kind") return -3;
  if (name === "apiVersion") return -2;
  return name === "metadata" ? -1 : 0;
}

function compileField(name: string, raw: RawField): FieldSchema {
  const type = parseType(raw.t);
  return {
    name,
    type,
    isPointer: raw.ptr === 1,
    isEmitted: raw.emit === 1,
    isRequired: raw.required === 1,
    default: raw.default,
    listType: raw.listType ?? "atomic",
    listMapKeys: raw.listMapKeys ?? [],
    mapType:
      raw.mapType ?? (raw.t.startsWith("#") ? (rawOf(raw.t.slice(1)).mapType ?? "granular") : "granular"),
    patchStrategies: raw.patchStrategy?.split(",") ?? [],
    patchMergeKey: raw.patchMergeKey,
  };
}

function parseType(text: string): TypeSchema {
  const inner = text.slice(1, -1);
  if (text.startsWith("[")) return { kind: "list", element: parseType(inner) };
  if (text.startsWith("{")) return { kind: "map", value: parseType(inner) };
  if (text.startsWith("#")) return new ObjectType(text.slice(1));
  const scalar = SCALARS.find((known) => known === text);
  assert(scalar !== undefined, `the field table has a type that nobody reads: ${text}`);
  return { kind: "scalar", scalar };
}

/** Compiles what it refers to only when somebody goes there. */
class ObjectType {
  readonly kind = "object";
  readonly #name: string;
  #schema: ObjectSchema | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  get schema(): ObjectSchema {
    return (this.#schema ??= definitionOf(this.#name));
  }
}

/** The definition of each kind, by `group/version Kind`. */
const names: ReadonlyMap<string, string> = new Map([
  ...Object.values(TABLES).flatMap(({ kinds }) => Object.entries(kinds)),
  ...Object.entries(SNAPSHOT_DEFINITIONS).flatMap(([name, { gvk = [] }]) =>
    gvk.map((text) => [text, name] as const),
  ),
]);

function rawOf(name: string): RawDefinition {
  const raw = SNAPSHOT_DEFINITIONS[name] ?? piece(name.slice(0, name.lastIndexOf(".")))[name];
  assert(raw !== undefined, `the field table refers to ${name}, which it does not define`);
  return raw;
}

type Piece = Readonly<Record<string, RawDefinition | undefined>>;

/** The tables that somebody has asked for, by package. */
const parsed = new Map<string, Piece>();

function piece(packageName: string): Piece {
  let found = parsed.get(packageName);
  if (found === undefined) {
    found = JSON.parse(TABLES[packageName]?.text ?? "{}") as Piece;
    parsed.set(packageName, found);
  }
  return found;
}
