import { formatJson, parseJson } from "../../kube/json-text.ts";
import { isJsonList, isJsonObject, type Json, type JsonObject } from "../../kube/patch/json.ts";
import { apiVersionOf } from "../../kube/object.ts";
import type { ApiObject } from "../objects.ts";
import { applySchemaOf } from "./apply-schema.ts";
import { compareObjects } from "./compare.ts";
import { extractFields } from "./extract.ts";
import { difference, EMPTY, union, type FieldSet } from "./field-set.ts";
import type { TrackedKind } from "./managers.ts";

/**
 * kubectl used to apply on its own side and to remember in an annotation what it had applied. The server helps an object
 * over to server-side apply, for this one manager.
 */
const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
const KUBECTL = "kubectl";

/** All annotations together. */
const ANNOTATION_BYTES_MAX = 256 * 1024;

/**
 * Fields that kubectl may take without force: those that hold what kubectl's own annotation says, so that they are its
 * own whatever the name it wrote under.
 */
export function fieldsLastApplied(kind: TrackedKind, live: ApiObject, manager: string): FieldSet {
  const text = manager === KUBECTL ? (live.metadata.annotations?.[ANNOTATION] ?? "") : "";
  const last = text === "" ? undefined : parse(text);
  if (last === undefined || last["apiVersion"] !== apiVersionOf(kind)) return EMPTY;
  const schema = applySchemaOf(kind);
  const { added, modified, removed } = compareObjects(schema, last, live as unknown as JsonObject);
  return difference(extractFields(schema, last), union(union(added, modified), removed));
}

/** The annotation brought up to date, where there is one, so that an older kubectl can go on from here. */
export function withLastApplied(object: JsonObject, applied: JsonObject, manager: string): JsonObject {
  const annotations = annotationsOf(object);
  if (manager !== KUBECTL || typeof annotations[ANNOTATION] !== "string" || annotations[ANNOTATION] === "") {
    return object;
  }
  const { [ANNOTATION]: _old, ...others } = annotations;
  const updated = { ...others, [ANNOTATION]: `${formatJson(sortKeys(withoutAnnotation(applied)))}\n` };
  const metadata = isJsonObject(object["metadata"]) ? object["metadata"] : {};
  return {
    ...object,
    metadata: { ...metadata, annotations: bytesOf(updated) > ANNOTATION_BYTES_MAX ? others : updated },
  };
}

function withoutAnnotation(applied: JsonObject): JsonObject {
  const annotations = annotationsOf(applied);
  if (annotations[ANNOTATION] === undefined || !isJsonObject(applied["metadata"])) return applied;
  const { [ANNOTATION]: _old, ...others } = annotations;
  const { annotations: _annotations, ...metadata } = applied["metadata"];
  const isLast = Object.keys(others).length === 0;
  return { ...applied, metadata: isLast ? metadata : { ...metadata, annotations: others } };
}

function annotationsOf({ metadata }: JsonObject): JsonObject {
  const annotations = isJsonObject(metadata) ? metadata["annotations"] : undefined;
  return isJsonObject(annotations) ? annotations : {};
}

function bytesOf(annotations: JsonObject): number {
  return Object.entries(annotations)
    .map(([key, value]) => Buffer.byteLength(key) + Buffer.byteLength(typeof value === "string" ? value : ""))
    .reduce((sum, bytes) => sum + bytes, 0);
}

function parse(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function sortKeys(value: Json): Json {
  if (isJsonList(value)) return value.map(sortKeys);
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value).sort();
  return Object.fromEntries(keys.map((key) => [key, sortKeys(value[key] ?? null)]));
}
