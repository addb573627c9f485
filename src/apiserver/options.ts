import { badRequest, invalidOptions, type FieldProblem } from "./errors.ts";
import type { FieldValidation } from "./schema/body.ts";

/** Query parameters of reads, parsed and checked (spec/apiserver.md, sections 8.1 and 9.1). */
export interface ListOptions {
  /** Absent: no limit. */
  readonly limit: number | undefined;
  readonly continue: string | undefined;
  readonly resourceVersion: number | undefined;
  readonly match: "Exact" | "NotOlderThan" | undefined;
}

export interface WatchOptions {
  readonly resourceVersion: number | undefined;
  readonly sendInitialEvents: boolean | undefined;
  readonly allowWatchBookmarks: boolean;
  readonly timeoutSeconds: number | undefined;
}

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
  /** Who the written fields belong to from now on; undefined where the client did not say. */
  readonly fieldManager: string | undefined;
}

export function parseListOptions(query: URLSearchParams): ListOptions {
  const options = {
    limit: positive(parseInteger(query, "limit")),
    continue: query.get("continue") || undefined,
    resourceVersion: parseVersion(query),
    match: query.get("resourceVersionMatch") || undefined,
  };
  if (
    options.continue !== undefined &&
    options.resourceVersion !== undefined &&
    options.resourceVersion !== 0
  ) {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const problem = matchProblem(options);
  if (problem !== undefined) throw invalidOptions("ListOptions", problem);
  if (flag(query, "sendInitialEvents") !== undefined) {
    throw invalidOptions(
      "ListOptions",
      forbiddenField("sendInitialEvents", "sendInitialEvents is forbidden for list"),
    );
  }
  return { ...options, match: options.match as ListOptions["match"] };
}

export function parseWatchOptions(query: URLSearchParams): WatchOptions {
  const sendInitialEvents = flag(query, "sendInitialEvents");
  const match = query.get("resourceVersionMatch") || undefined;
  const problem = watchMatchProblem(sendInitialEvents, match, query.get("continue") || undefined);
  if (problem !== undefined) throw invalidOptions("ListOptions", problem);
  return {
    resourceVersion: parseVersion(query),
    sendInitialEvents,
    allowWatchBookmarks: flag(query, "allowWatchBookmarks") ?? false,
    timeoutSeconds: positive(parseInteger(query, "timeoutSeconds")),
  };
}

/** `kind` is how the server names the options of this verb in errors: CreateOptions and so on. */
export function parseWriteOptions(query: URLSearchParams, kind: string): WriteOptions {
  const dryRun = query.getAll("dryRun").filter((value) => value !== "");
  if (dryRun.some((value) => value !== "All")) {
    throw invalidOptions(kind, unsupported("dryRun", dryRun.join(), ["All"]));
  }
  const fieldValidation = query.get("fieldValidation") ?? "";
  if (!["", "Ignore", "Strict", "Warn"].includes(fieldValidation)) {
    throw invalidOptions(
      kind,
      unsupported("fieldValidation", fieldValidation, ["", "Ignore", "Strict", "Warn"]),
    );
  }
  const fieldManager = query.get("fieldManager") ?? "";
  if (Buffer.byteLength(fieldManager) > 128) {
    const message = "Too long: may not be more than 128 bytes";
    throw invalidOptions(kind, { field: "fieldManager", reason: "FieldValueTooLong", message });
  }
  return {
    dryRun: dryRun.length > 0,
    fieldValidation: (fieldValidation || "Warn") as FieldValidation,
    fieldManager: fieldManager || undefined,
  };
}

/** `true`, `1`, or there at all; `false` and `0` are false; undefined where it was not given. */
export function flag(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name)?.toLowerCase();
  return value === undefined ? undefined : value !== "false" && value !== "0";
}

export function parseInteger(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const value = /^[+-]?[0-9]+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value)) throw badRequest(`${name}: parsing "${text}": it must be a whole number`);
  return value;
}

/** The resourceVersion of the query; undefined when it is absent or empty. */
export function parseVersion(query: URLSearchParams): number | undefined {
  const text = query.get("resourceVersion") ?? "";
  if (text === "") return undefined;
  const value = /^[0-9]+$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value)) {
    throw badRequest(`resourceVersion: Invalid value: "${text}": it must be a decimal number`);
  }
  return value;
}

export function unsupported(field: string, value: string, supported: readonly string[]): FieldProblem {
  const list = supported.map((one) => JSON.stringify(one)).join(", ");
  return {
    field,
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${list}`,
  };
}

function matchProblem(options: {
  continue: string | undefined;
  resourceVersion: number | undefined;
  match: string | undefined;
}): FieldProblem | undefined {
  const { match, resourceVersion } = options;
  const field = "resourceVersionMatch";
  if (match === undefined) return undefined;
  if (options.continue !== undefined)
    return forbiddenField(field, `${field} is forbidden when continue is provided`);
  if (resourceVersion === undefined)
    return forbiddenField(field, `${field} is forbidden unless resourceVersion is provided`);
  if (match !== "Exact" && match !== "NotOlderThan")
    return unsupported(field, match, ["Exact", "NotOlderThan", ""]);
  if (match === "Exact" && resourceVersion === 0) {
    return forbiddenField(field, `${field} "exact" is forbidden for resourceVersion "0"`);
  }
  return undefined;
}

function watchMatchProblem(
  sendInitialEvents: boolean | undefined,
  match: string | undefined,
  token: string | undefined,
): FieldProblem | undefined {
  const field = "resourceVersionMatch";
  if (match !== undefined && token !== undefined) {
    return forbiddenField(field, `${field} is forbidden when continue is provided`);
  }
  if (sendInitialEvents === undefined) {
    if (match === undefined) return undefined;
    return forbiddenField(field, `${field} is forbidden for watch unless sendInitialEvents is provided`);
  }
  if (match === undefined) {
    return forbiddenField(field, `sendInitialEvents requires setting ${field} to NotOlderThan`);
  }
  return match === "NotOlderThan" ? undefined : unsupported(field, match, ["NotOlderThan"]);
}

function forbiddenField(field: string, why: string): FieldProblem {
  return { field, reason: "FieldValueForbidden", message: `Forbidden: ${why}` };
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}
