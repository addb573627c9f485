// The field table: what is published about every definition that the wanted kinds reach, and nothing of its prose.
import { isEmitted } from "./go-types.mjs";
import { splitName } from "./sources.mjs";

const META = "io.k8s.apimachinery.pkg.apis.meta.v1";

/** Definitions that are one value in JSON. */
const SCALARS = {
  [`${META}.Time`]: "time",
  [`${META}.MicroTime`]: "microTime",
  [`${META}.FieldsV1`]: "fieldsV1",
  "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
  "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
  "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
};

/**
 * Departures from what is published, each with its reason.
 * - An empty `CSINode.status` is not written: it is alpha in 1.37, unknown before, and nothing fills it.
 */
const NOT_EMITTED = new Set(["io.k8s.api.storage.v1.CSINode status"]);

/** Kinds that every group version lists but that are no objects of it. */
const SHARED_KINDS = new Set(["DeleteOptions", "Status", "WatchEvent"]);

/** The table, by definition name; `wanted` are group versions as in `apps/v1`, and `v1` for the core. */
export function buildTable({ definitions, packages, wanted }) {
  const table = new Map();
  const builder = createBuilder({ definitions, packages, wanted, table });
  for (const [name, schema] of definitions) {
    if (kindsOf(schema, wanted).length > 0) builder.add(name);
  }
  return new Map([...table].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function kindsOf(schema, wanted) {
  return (schema["x-kubernetes-group-version-kind"] ?? [])
    .map(({ group, version, kind }) => ({
      groupVersion: group === "" ? version : `${group}/${version}`,
      kind,
    }))
    .filter(({ groupVersion, kind }) => {
      if (SHARED_KINDS.has(kind)) return groupVersion === "v1";
      return wanted.has(groupVersion) && !kind.endsWith("List") && !kind.startsWith("API");
    })
    .map(({ groupVersion, kind }) => `${groupVersion} ${kind}`);
}

function createBuilder({ definitions, packages, wanted, table }) {
  function add(name) {
    if (table.has(name)) return;
    const schema = definitions.get(name);
    const definition = { fields: {} };
    table.set(name, definition);
    addFields(name, definition, schema);
    const gvk = kindsOf(schema, wanted);
    if (gvk.length > 0) definition.gvk = gvk;
    if (schema["x-kubernetes-map-type"] !== undefined) definition.mapType = schema["x-kubernetes-map-type"];
  }

  function addFields(name, definition, schema) {
    const { own, inlined } = goFieldsOf(name);
    for (const property of Object.keys(schema.properties ?? {}).sort()) {
      const goField = own.get(property);
      definition.fields[property] = field(name, { property, schema: schema.properties[property], goField });
      if (schema.required?.includes(property)) markRequired(definition.fields[property]);
    }
    const messages = inlined.filter(({ number }) => number !== undefined);
    if (messages.length === 0) return;
    definition.pbInline = messages.map(({ number, protoName, definitionName }) => {
      addInlined(definitionName, schema);
      return { pb: number, name: protoName, kind: "one", type: `#${definitionName}` };
    });
  }

  /** A message that only protobuf has: JSON has its fields in the parent, whose document describes them. */
  function addInlined(name, parent) {
    if (definitions.has(name)) return void add(name);
    if (table.has(name)) return;
    const fields = {};
    table.set(name, { protoOnly: 1, fields });
    for (const [property, goField] of goFieldsOf(name).own) {
      const { t, pb, ptr, emit } = field(name, { property, schema: parent.properties[property], goField });
      fields[property] = {
        pb,
        t,
        ...(ptr === undefined ? {} : { ptr }),
        ...(emit === undefined ? {} : { emit }),
      };
    }
  }

  function goFieldsOf(name) {
    const struct = packages.structOf(name);
    if (struct === undefined) throw new Error(`${name}: no such struct in the Go types`);
    const own = new Map(struct.fields.filter(({ isInline }) => !isInline).map((one) => [one.name, one]));
    const inlined = struct.fields
      .filter(({ isInline }) => isInline)
      .map((one) => ({ ...one, definitionName: definitionNameOf(name, struct, one.goType) }));
    checkNumbers(name, struct);
    return { own, inlined };
  }

  function checkNumbers(name, { fields }) {
    const message = packages.messageOf(name);
    for (const { protoName, number } of message === undefined ? [] : fields) {
      if (number !== undefined && message.get(protoName) !== number) {
        throw new Error(
          `${name}.${protoName}: ${number} in the Go types, ${message.get(protoName)} in generated.proto`,
        );
      }
    }
  }

  function field(owner, { property, schema, goField }) {
    const t = typeOf(schema);
    const one = { t };
    if (goField?.number !== undefined) one.pb = goField.number;
    if (isTelling(schema)) one.default = schema.default;
    copy(schema, "x-kubernetes-list-type", one, "listType");
    copy(schema, "x-kubernetes-list-map-keys", one, "listMapKeys");
    copy(schema, "x-kubernetes-map-type", one, "mapType");
    copy(schema, "x-kubernetes-patch-strategy", one, "patchStrategy");
    copy(schema, "x-kubernetes-patch-merge-key", one, "patchMergeKey");
    if (goField?.isPointer) one.ptr = 1;
    if (goField !== undefined && isEmitted(goField, t) && !NOT_EMITTED.has(`${owner} ${property}`))
      one.emit = 1;
    return one;
  }

  function typeOf(schema) {
    const ref = schema.$ref ?? schema.allOf?.[0]?.$ref;
    if (ref !== undefined) return referenceTo(ref.slice("#/components/schemas/".length));
    switch (schema.type) {
      case "array":
        return `[${typeOf(schema.items)}]`;
      case "object":
        return schema.additionalProperties === undefined ? "raw" : `{${typeOf(schema.additionalProperties)}}`;
      case "integer":
        return schema.format;
      case "string":
        return schema.format === "byte" ? "bytes" : "string";
      case "boolean":
        return "boolean";
      default:
        throw new Error(`nobody reads ${JSON.stringify(schema)}`);
    }
  }

  function referenceTo(name) {
    const scalar = SCALARS[name];
    if (scalar !== undefined) return scalar;
    add(name);
    return `#${name}`;
  }

  return { add };
}

/** `required` stands before the rest, behind type and number. */
function markRequired(field) {
  const { t, pb, ...rest } = field;
  for (const key of Object.keys(field)) delete field[key];
  Object.assign(field, { t, ...(pb === undefined ? {} : { pb }), required: 1 }, rest);
}

/** The empty object and the empty text are what every field of that type has. */
function isTelling({ default: value }) {
  return value !== undefined && value !== "" && JSON.stringify(value) !== "{}";
}

function copy(from, key, to, name) {
  if (from[key] !== undefined) to[name] = from[key];
}

/** `v1.LocalObjectReference`, `Rule`, `metav1.TypeMeta` as OpenAPI names them. */
function definitionNameOf(owner, { imports }, goType) {
  const [alias, typeName] = goType.includes(".") ? goType.split(".") : [undefined, goType];
  if (alias === undefined) return `${splitName(owner).packageName}.${typeName}`;
  const path = imports.get(alias) ?? "";
  return `${path.replace(/^k8s\.io\//, "io.k8s.").replaceAll("/", ".")}.${typeName}`;
}
