import { parseJson } from "../../kube/json-text.ts";
import { isJsonObject, type JsonObject } from "../../kube/patch/json.ts";
import { StatusError } from "../errors.ts";
import { bodyText, mediaType } from "../negotiation.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { decodeFields } from "./decode.ts";
import { findDuplicateKeys } from "./duplicate-keys.ts";
import { decodeMessage, readEnvelope } from "./protobuf.ts";
import { knownSchema, type GroupVersionKind, type ObjectSchema } from "./schema.ts";
import { checkType, findTypeMismatch, refusal, unrecognized } from "./type-meta.ts";
import { parseYaml, type ParsedText } from "./yaml-body.ts";

/** What to do about fields that mean nothing: a parameter of every write (spec/apiserver.md, section 10.1). */
export type FieldValidation = "Ignore" | "Warn" | "Strict";

/** An object in the short form of decode.ts, and what its sender should hear about it. */
export interface DecodedBody {
  readonly object: ApiObject;
  /** `unknown field "spec.foo"`, `duplicate field "data.a"`; empty under Ignore, and an error under Strict. */
  readonly warnings: readonly string[];
}

export interface RequestBody {
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const YAML = "application/yaml";

/** The body of a POST or PUT; 400 for what is no object of this kind, 415 for a format we cannot read. */
export function decodeBody(
  kind: GroupVersionKind,
  request: RequestBody,
  fieldValidation: FieldValidation = "Warn",
): DecodedBody {
  const schema = knownSchema(kind);
  const format = formatOf(schema, request);
  if (format === "protobuf") {
    return { object: withType(kind, fromProtobuf(kind, schema, request)), warnings: [] };
  }
  const text = bodyText(request.body);
  const { value, duplicates } = parseText(kind, { format, text, fieldValidation });
  checkType(kind, value, text);
  try {
    return decodeValue(kind, value, { fieldValidation, duplicates });
  } catch (error) {
    throw refusal(kind, error);
  }
}

/**
 * The body of a DELETE and the like: options that have no metadata, whose apiVersion does not matter, and
 * whose unknown fields are nobody's business. An empty body is empty options.
 */
export function decodeOptions(kind: GroupVersionKind, request: RequestBody): JsonObject {
  const schema = knownSchema(kind);
  if (request.body.length === 0) return {};
  const format = formatOf(schema, request);
  if (format === "protobuf") return fromProtobuf(kind, schema, request);
  const text = bodyText(request.body);
  const { value } = parseText(kind, { format, text, fieldValidation: "Ignore" });
  checkType(kind, value, text);
  try {
    return decodeFields(schema, value).object;
  } catch (error) {
    throw refusal(kind, error);
  }
}

/**
 * What a patch has made of an object. The same checks as for a body, but what does not hold, its kind
 * included, is 422 on the field `patch`. `duplicates` are keys that the patch itself says twice.
 */
export function decodePatched(
  kind: GroupVersionKind,
  value: unknown,
  {
    fieldValidation = "Warn",
    duplicates = [],
  }: { fieldValidation?: FieldValidation; duplicates?: readonly string[] } = {},
): DecodedBody {
  const mismatch = findTypeMismatch(kind, value);
  if (mismatch !== undefined) throw invalidPatch(mismatch.why);
  try {
    return decodeValue(kind, value, { fieldValidation, duplicates });
  } catch (error) {
    if (!(error instanceof DecodeFailure)) throw error;
    throw invalidPatch(error.message);
  }
}

function decodeValue(
  kind: GroupVersionKind,
  value: unknown,
  { fieldValidation, duplicates }: { fieldValidation: FieldValidation; duplicates: readonly string[] },
): DecodedBody {
  const { object, unknown } = decodeFields(knownSchema(kind), value);
  const problems = fieldValidation === "Ignore" ? [] : describeProblems(unknown, duplicates);
  if (fieldValidation === "Strict" && problems.length > 0) {
    throw new DecodeFailure(`strict decoding error: ${problems.join(", ")}`);
  }
  return { object: withReset(withType(kind, object), value), warnings: problems };
}

function describeProblems(unknown: readonly string[], duplicates: readonly string[]): string[] {
  // Below an unknown field nothing is known to be wrong.
  const known = duplicates.filter((path) => !unknown.some((above) => isWithin(path, above)));
  return [
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
    ...known.map((path) => `duplicate field ${JSON.stringify(path)}`),
  ];
}

function isWithin(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`) || path.startsWith(`${above}[`);
}

function fromProtobuf(kind: GroupVersionKind, schema: ObjectSchema, { body }: RequestBody): JsonObject {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  let envelope;
  try {
    envelope = readEnvelope(bytes);
  } catch (error) {
    throw error instanceof DecodeFailure ? unrecognized(kind, error.message, bytes) : error;
  }
  checkType(kind, { kind: envelope.kind, apiVersion: envelope.apiVersion }, bytes);
  try {
    // A number nobody knows is a field of a newer release: skipped, and no reason for a warning.
    return decodeFields(schema, decodeMessage(schema, envelope.raw)).object;
  } catch (error) {
    throw refusal(kind, error);
  }
}

type Format = "json" | "yaml" | "protobuf";

function formatOf(schema: ObjectSchema, { headers }: RequestBody): Format {
  const type = mediaType(headers["content-type"]);
  if (type === "" || type === "application/json") return "json";
  if (type === YAML) return "yaml";
  if (type === PROTOBUF && !schema.isCustom) return "protobuf";
  const accepted = ["application/json", YAML, ...(schema.isCustom ? [] : [PROTOBUF])].join(", ");
  throw new StatusError(
    415,
    `the body of the request was in an unknown format - accepted media types include: ${accepted}`,
  );
}

function parseText(
  kind: GroupVersionKind,
  {
    format,
    text,
    fieldValidation,
  }: { format: "json" | "yaml"; text: string; fieldValidation: FieldValidation },
): ParsedText {
  try {
    if (format === "yaml") return parseYaml(text);
    const value = parseJson(text);
    return { value, duplicates: fieldValidation === "Ignore" ? [] : findDuplicateKeys(text) };
  } catch (error) {
    if (error instanceof StatusError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    const what =
      format === "yaml"
        ? "error converting YAML to JSON: yaml"
        : "couldn't get version/kind; json parse error";
    throw unrecognized(kind, `${what}: ${why}`, text);
  }
}

/** Types are what the path says, whether or not the body said so, and there is always metadata. */
function withType(kind: GroupVersionKind, object: JsonObject): ApiObject {
  const { metadata } = object;
  return {
    ...object,
    kind: kind.kind,
    apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
    metadata: isJsonObject(metadata) ? metadata : {},
  };
}

/**
 * In short form an empty list is none. But a list of managers that is given and empty is an order to forget
 * them all (apply/managers.ts), so it stays.
 */
function withReset(object: ApiObject, value: unknown): ApiObject {
  const managedFields = fieldAt(value, "metadata", "managedFields");
  if (!Array.isArray(managedFields) || managedFields.length > 0) return object;
  return { ...object, metadata: { ...object.metadata, managedFields: [] } };
}

/** The real server quotes the whole object here. The reason alone is what anybody reads. */
function invalidPatch(why: string): StatusError {
  const message = `Invalid value: ${why}`;
  return new StatusError(422, ` "" is invalid: patch: ${message}`, {
    details: { causes: [{ reason: "FieldValueInvalid", message, field: "patch" }] },
  });
}
