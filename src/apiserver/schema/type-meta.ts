import { isJsonObject } from "../../kube/patch/json.ts";
import { badRequest, type StatusError } from "../errors.ts";
import { DecodeFailure } from "./decode-failure.ts";
import { schemaOf, type GroupVersionKind } from "./schema.ts";

/** Bytes of a body that an error quotes, so that its sender recognises it. */
const SUMMARY_BYTES = 30;

/** What is wrong with a body's kind and apiVersion, and whether it has any that can be named. */
interface TypeMismatch {
  readonly given?: GroupVersionKind;
  readonly why: string;
}

/**
 * A body may leave out its kind and apiVersion, which the path knows, but must not contradict it. Options
 * go with any apiVersion: Go clients send them under that of the resource.
 */
export function checkType(expected: GroupVersionKind, value: unknown, body: string | Uint8Array): void {
  const mismatch = findTypeMismatch(expected, value);
  if (mismatch === undefined) return;
  const { given, why } = mismatch;
  throw given === undefined ? unrecognized(expected, why, body) : refuse(given, expected, why);
}

export function findTypeMismatch(expected: GroupVersionKind, value: unknown): TypeMismatch | undefined {
  const noType = "couldn't get version/kind; json parse error";
  if (!isJsonObject(value)) {
    const what = Array.isArray(value) ? "array" : typeof value;
    return { why: `${noType}: json: cannot unmarshal ${what}` };
  }
  const { kind, apiVersion } = { kind: value["kind"] ?? "", apiVersion: value["apiVersion"] ?? "" };
  if (typeof kind !== "string" || typeof apiVersion !== "string") {
    return { why: `${noType}: ${typeof kind === "string" ? "apiVersion" : "kind"} must be a string` };
  }
  const given = withDefaults(expected, kind, apiVersion);
  const isSameVersion = given.group === expected.group && given.version === expected.version;
  if (given.kind === expected.kind && (isSameVersion || isOptions(expected))) return undefined;
  return { given, why: typeProblem(given, expected) };
}

/** 400 for a body of this kind whose content is not right; anything else thrown is passed on. */
export function refusal(kind: GroupVersionKind, error: unknown): unknown {
  return error instanceof DecodeFailure ? refuse(kind, kind, error.message) : error;
}

/** 400 for a body that does not even say what it is. */
export function unrecognized(
  expected: GroupVersionKind,
  why: string,
  body: string | Uint8Array,
): StatusError {
  return badRequest(
    `the object provided is unrecognized (must be of type ${expected.kind}): ${why} (${summarize(body)})`,
  );
}

function refuse(given: GroupVersionKind, expected: GroupVersionKind, why: string): StatusError {
  return badRequest(
    `${given.kind} in version "${given.version}" cannot be handled as a ${expected.kind}: ${why}`,
  );
}

function withDefaults(expected: GroupVersionKind, kind: string, apiVersion: string): GroupVersionKind {
  const slash = apiVersion.indexOf("/");
  const [group, version] = [apiVersion.slice(0, Math.max(slash, 0)), apiVersion.slice(slash + 1)];
  const isGiven = apiVersion !== "";
  return {
    kind: kind === "" ? expected.kind : kind,
    group: isGiven ? group : expected.group,
    version: isGiven ? version : expected.version,
  };
}

function isOptions({ kind }: GroupVersionKind): boolean {
  return kind.endsWith("Options");
}

function typeProblem(given: GroupVersionKind, expected: GroupVersionKind): string {
  if (schemaOf(given) !== undefined) {
    const target = `${expected.group.split(".")[0] || "core"}.${expected.kind}`;
    return `converting (${given.version}.${given.kind}) to (${target}): unknown conversion`;
  }
  const version = given.group === "" ? given.version : `${given.group}/${given.version}`;
  return `no kind "${given.kind}" is registered for version "${version}"`;
}

/** JSON as text, anything else as hexadecimal digits. */
function summarize(body: string | Uint8Array): string {
  const start = body.slice(0, SUMMARY_BYTES + 1);
  const bytes =
    typeof start === "string"
      ? Buffer.from(start)
      : Buffer.from(start.buffer, start.byteOffset, start.length);
  if (bytes.length === 0) return "<empty>";
  const shown = bytes.subarray(0, SUMMARY_BYTES);
  const text = bytes[0] === 0x7b ? shown.toString("utf8") : shown.toString("hex");
  return bytes.length > SUMMARY_BYTES ? `${text} ...` : text;
}
