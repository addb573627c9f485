import { formatJson, parseJson } from "../kube/json-text.ts";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { isJsonObject } from "../kube/patch/json.ts";
import { apiVersionOf } from "../kube/object.ts";
import { storedKind, type Kind } from "./kinds.ts";
import { completeObject } from "./schema/complete.ts";
import { decodeFields } from "./schema/decode.ts";
import { knownSchema } from "./schema/schema.ts";
import type { StoredObject } from "./store/store.ts";

/** An object as this server works on it: raw JSON whose metadata is known to have the right types. */
export interface ApiObject {
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** Parsed only where somebody looks inside, and kept for a while. Nobody may change what it returns. */
export function parseStored(stored: StoredObject): ApiObject {
  let object = parsed.get(stored);
  if (object === undefined) {
    object = parseJson(stored.text) as ApiObject;
    parsed.set(stored, object);
  }
  return object;
}

const parsed = createRecent<ApiObject>();

/**
 * A stored object in the short form of `schema/decode.ts`, in which two objects that mean the same are equal.
 * Everything that decides upon an object works on this form; `renderObject` completes it again.
 */
export function shortForm(kind: Kind, stored: StoredObject): ApiObject {
  let object = shortened.get(stored);
  if (object === undefined) {
    object = shorten(kind, parseStored(stored));
    shortened.set(stored, object);
  }
  return object;
}

/** Any object of this kind in short form, as after defaults that wrote zeros. */
export function shorten(kind: Kind, object: ApiObject): ApiObject {
  return decodeFields(knownSchema(storedKind(kind)), object).object as unknown as ApiObject;
}

const shortened = createRecent<ApiObject>();

/**
 * What was set last, at least the last RECENT_MIN of it or RECENT_CHARS, and at most twice as much. Parsed objects take
 * two to three times what their text does: kept for every version in five minutes of history, they would be most
 * of the memory. The bound on the text is for large objects: a thousand of 100 kB were 130 MB.
 */
function createRecent<Value>() {
  let [newer, older] = [new WeakMap<StoredObject, Value>(), new WeakMap<StoredObject, Value>()];
  let [count, chars] = [0, 0];
  return {
    get: (key: StoredObject) => newer.get(key) ?? older.get(key),
    set(key: StoredObject, value: Value) {
      chars += key.text.length;
      if (++count > RECENT_MIN || chars > RECENT_CHARS) {
        [newer, older] = [new WeakMap(), newer];
        [count, chars] = [1, key.text.length];
      }
      newer.set(key, value);
    },
  };
}

/** Far more than are looked at by two requests at once; 20 MB of pods. */
const RECENT_MIN = 1_024;
const RECENT_CHARS = 4 * 2 ** 20;

/**
 * The text of an object in the form it is stored and sent. `kind` and `apiVersion` come first, always, so that
 * list items, which go without them, are a slice of it. Without a revision it is the answer to a dry run.
 */
export function renderObject(kind: Kind, object: ApiObject, revision: number | undefined): string {
  const kept = storedKind(kind);
  const { resourceVersion: _, ...metadata } = object.metadata;
  const versioned = revision === undefined ? metadata : { ...metadata, resourceVersion: String(revision) };
  return formatJson(
    completeObject(kept, { ...object, kind: kept.kind, apiVersion: apiVersionOf(kept), metadata: versioned }),
  );
}

/** What every stored text of this kind begins with. */
export function typePrefix(kind: Kind): string {
  return `{"kind":${JSON.stringify(kind.kind)},"apiVersion":${JSON.stringify(apiVersionOf(kind))},`;
}

/** A field by its path, whatever it is; undefined where the path leads nowhere. */
export function fieldAt(object: unknown, ...path: readonly string[]): unknown {
  let value = object;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** RFC 3339 in whole seconds, as metadata has it. */
export function toTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
