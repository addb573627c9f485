import { isJsonObject, type JsonObject } from "../../kube/patch/json.ts";
import { StatusError } from "../errors.ts";
import { bodyText, mediaType } from "../negotiation.ts";
import type { ApiObject } from "../objects.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { decodeFields } from "./decode.ts";
import { findDuplicateKeys } from "./duplicate-keys.ts";
import { decodeMessage, readEnvelope } from "./protobuf.ts";
import { knownSchema, type GroupVersionKind, type ObjectSchema } from "./schema.ts";
import { checkType, refusal, unrecognized } from "./type-meta.ts";

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

/** The body of a POST or PUT; 400 for what is no object of this kind, 415 for a format we cannot read. */
export function decodeBody(
  kind: GroupVersionKind,
  request: RequestBody,
  fieldValidation: FieldValidation = "Warn",
): DecodedBody {
  const schema = knownSchema(kind);
  if (isProtobuf(schema, request)) {
    return { object: withType(kind, fromProtobuf(kind, schema, request)), warnings: [] };
  }
  const text = bodyText(request.body);
  return decodeObject(kind, parseJson(kind, text), { fieldValidation, text });
}

/**
 * The same for a value that has been parsed already, as from YAML. `text` is the JSON it came from, where
 * duplicate keys would be; without it none are looked for.
 */
export function decodeObject(
  kind: GroupVersionKind,
  value: unknown,
  { fieldValidation = "Warn", text = "" }: { fieldValidation?: FieldValidation; text?: string } = {},
): DecodedBody {
  checkType(kind, value, text);
  try {
    return decodeValue(kind, value, { fieldValidation, text });
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
  if (isProtobuf(schema, request)) return fromProtobuf(kind, schema, request);
  const text = bodyText(request.body);
  const value = parseJson(kind, text);
  checkType(kind, value, text);
  try {
    return decodeFields(schema, value).object;
  } catch (error) {
    throw refusal(kind, error);
  }
}

/**
 * What a patch has made of an object. The same checks as for a body, but what does not hold is 422 on the
 * field `patch`. `patchText` is the body of the request, where duplicate keys would be.
 */
export function decodePatched(
  kind: GroupVersionKind,
  value: unknown,
  { fieldValidation = "Warn", patchText }: { fieldValidation?: FieldValidation; patchText: string },
): DecodedBody {
  checkType(kind, value, "");
  try {
    return decodeValue(kind, value, { fieldValidation, text: patchText });
  } catch (error) {
    if (!(error instanceof DecodeFailure)) throw error;
    throw invalidPatch(error.message);
  }
}

function decodeValue(
  kind: GroupVersionKind,
  value: unknown,
  { fieldValidation, text }: { fieldValidation: FieldValidation; text: string },
): DecodedBody {
  const { object, unknown } = decodeFields(knownSchema(kind), value);
  const problems = fieldValidation === "Ignore" ? [] : describeProblems(unknown, findDuplicateKeys(text));
  if (fieldValidation === "Strict" && problems.length > 0) {
    throw new DecodeFailure(`strict decoding error: ${problems.join(", ")}`);
  }
  return { object: withType(kind, object), warnings: problems };
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

function isProtobuf(schema: ObjectSchema, { headers }: RequestBody): boolean {
  const type = mediaType(headers["content-type"]);
  if (type === "" || type === "application/json") return false;
  if (type === PROTOBUF && !schema.isCustom) return true;
  const accepted = schema.isCustom ? "application/json" : `application/json, ${PROTOBUF}`;
  throw new StatusError(
    415,
    `the body of the request was in an unknown format - accepted media types include: ${accepted}`,
  );
}

function parseJson(kind: GroupVersionKind, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw unrecognized(kind, `couldn't get version/kind; json parse error: ${why}`, text);
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

/** The real server quotes the whole object here. The reason alone is what anybody reads. */
function invalidPatch(why: string): StatusError {
  const message = `Invalid value: ${why}`;
  return new StatusError(422, ` "" is invalid: patch: ${message}`, {
    details: { causes: [{ reason: "FieldValueInvalid", message, field: "patch" }] },
  });
}
