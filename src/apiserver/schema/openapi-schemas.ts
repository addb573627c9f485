import type { Json, JsonObject } from "../../kube/patch/json.ts";
import {
  definitionOf,
  type FieldSchema,
  type GroupVersionKind,
  type ObjectSchema,
  type ScalarKind,
  type TypeSchema,
} from "./schema.ts";

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";
const LIST_META = `${META}.ListMeta`;
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

export const STATUS = `${META}.Status`;
export const DELETE_OPTIONS = `${META}.DeleteOptions`;
export const PATCH = `${META}.Patch`;

/** Definitions that are scalars in JSON, or any JSON at all. */
const SPECIAL: Readonly<Record<string, JsonObject>> = {
  [QUANTITY]: { oneOf: [{ type: "string" }, { type: "number" }] },
  [INT_OR_STRING]: { format: "int-or-string", oneOf: [{ type: "integer" }, { type: "string" }] },
  [`${META}.Time`]: { type: "string", format: "date-time" },
  [`${META}.MicroTime`]: { type: "string", format: "date-time" },
  [`${META}.FieldsV1`]: { type: "object" },
  [PATCH]: { type: "object" },
};

/** Collects the definitions that a document refers to, each once, in the order they are met. */
export class Components {
  readonly #schemas = new Map<string, JsonObject>();

  /** Adds a definition and all it needs; returns what refers to it. */
  ref(name: string): JsonObject {
    if (!this.#schemas.has(name)) this.#add(name);
    return { $ref: `#/components/schemas/${name}` };
  }

  /** The list of a kind, which is in no table: they are all alike. */
  listRef(schema: ObjectSchema, { group, version, kind }: GroupVersionKind): JsonObject {
    const name = `${schema.name}List`;
    if (!this.#schemas.has(name)) {
      this.#schemas.set(name, {
        type: "object",
        required: ["items"],
        properties: {
          apiVersion: { type: "string" },
          items: { type: "array", items: { allOf: [this.ref(schema.name)] } },
          kind: { type: "string" },
          metadata: { allOf: [this.ref(LIST_META)] },
        },
        "x-kubernetes-group-version-kind": [{ group, version, kind: `${kind}List` }],
      });
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  /** By name, so that the text of a document depends on nothing but the table. */
  toJson(): JsonObject {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #add(name: string): void {
    const special = SPECIAL[name];
    if (special !== undefined) {
      this.#schemas.set(name, special);
      return;
    }
    const schema = definitionOf(name);
    // Entered before it is made, so that a definition may refer to itself.
    this.#schemas.set(name, {});
    const required = schema.fields.filter(({ isRequired }) => isRequired).map((field) => field.name);
    this.#schemas.set(name, {
      type: "object",
      ...(required.length === 0 ? {} : { required }),
      properties: Object.fromEntries(schema.fields.map((field) => [field.name, this.#property(field)])),
      ...(schema.mapType === "atomic" ? { "x-kubernetes-map-type": "atomic" } : {}),
      ...(schema.kinds.length === 0
        ? {}
        : { "x-kubernetes-group-version-kind": schema.kinds.map((kind) => ({ ...kind })) }),
    });
  }

  #property(field: FieldSchema): JsonObject {
    return {
      ...this.#type(field.type),
      ...(field.default === undefined ? {} : { default: field.default as Json }),
      ...extensions(field),
    };
  }

  #type(type: TypeSchema): JsonObject {
    switch (type.kind) {
      case "object":
        return this.#reference(type.schema.name);
      case "list":
        return { type: "array", items: this.#type(type.element) };
      case "map":
        return { type: "object", additionalProperties: this.#type(type.value) };
      case "scalar":
        return this.#scalar(type.scalar);
    }
  }

  #scalar(scalar: ScalarKind): JsonObject {
    switch (scalar) {
      case "string":
      case "boolean":
        return { type: scalar };
      case "int32":
      case "int64":
        return { type: "integer", format: scalar };
      case "bytes":
        return { type: "string", format: "byte" };
      case "quantity":
        return this.#reference(QUANTITY);
      case "intOrString":
        return this.#reference(INT_OR_STRING);
      case "time":
        return this.#reference(`${META}.Time`);
      case "microTime":
        return this.#reference(`${META}.MicroTime`);
      case "fieldsV1":
        return this.#reference(`${META}.FieldsV1`);
      case "raw":
        return { type: "object" };
    }
  }

  /** Beside a bare `$ref` nothing else counts, so it is wrapped. */
  #reference(name: string): JsonObject {
    return { allOf: [this.ref(name)] };
  }
}

/** How patches and server-side apply treat a field. */
function extensions({
  type,
  listType,
  listMapKeys,
  mapType,
  patchStrategies,
  patchMergeKey,
}: FieldSchema): JsonObject {
  return {
    ...(type.kind === "list" ? { "x-kubernetes-list-type": listType } : {}),
    ...(listMapKeys.length === 0 ? {} : { "x-kubernetes-list-map-keys": listMapKeys }),
    ...(type.kind === "map" && mapType === "atomic" ? { "x-kubernetes-map-type": mapType } : {}),
    ...(patchStrategies.length === 0 ? {} : { "x-kubernetes-patch-strategy": patchStrategies.join(",") }),
    ...(patchMergeKey === undefined ? {} : { "x-kubernetes-patch-merge-key": patchMergeKey }),
  };
}
