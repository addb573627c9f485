import { StoreError } from "./store/store.ts";
import type { HandlerResponse } from "../kube/handler.ts";
import { codeForStatus, isKubeError, type StatusDetails } from "../kube/errors.ts";
import { resourceName, type Resource } from "../kube/object.ts";

/** `Status` as it goes over the wire. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: { readonly continue?: string };
  readonly status: "Failure";
  readonly message: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code: number;
}

/** The one error of this room: an answer other than the one asked for, ready to be sent. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: number,
    message: string,
    { reason = codeForStatus(code), details, metadata = {}, headers = {} }: StatusOptions = {},
  ) {
    super(`${reason}: ${message}`);
    this.status = {
      kind: "Status",
      apiVersion: "v1",
      metadata,
      status: "Failure",
      message,
      reason,
      ...(details === undefined ? {} : { details }),
      code,
    };
    this.headers = headers;
  }
}

interface StatusOptions {
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly metadata?: { readonly continue?: string };
  readonly headers?: Readonly<Record<string, string>>;
}

/** One thing wrong with one field. `reason` is a cause type of the API: `FieldValueRequired` and so on. */
export interface FieldProblem {
  readonly field: string;
  readonly reason: `FieldValue${string}`;
  /** From the second word of the API's text: `Required value: name or generateName is required`. */
  readonly message: string;
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, message);
}

export function notFound(resource: Resource, name: string): StatusError {
  return new StatusError(404, `${resourceName(resource)} "${name}" not found`, {
    details: detailsOf(resource, name),
  });
}

/** The path names nothing we serve. */
export function unknownResource(): StatusError {
  return new StatusError(404, "the server could not find the requested resource", { details: {} });
}

export function methodNotAllowed(): StatusError {
  return new StatusError(405, "the server does not allow this method on the requested resource", {
    details: {},
  });
}

export function forbidden(resource: Resource, name: string | undefined, why: string): StatusError {
  const what = name === undefined ? resourceName(resource) : `${resourceName(resource)} "${name}"`;
  return new StatusError(403, `${what} is forbidden: ${why}`, { details: detailsOf(resource, name) });
}

export function alreadyExists(
  resource: Resource,
  name: string,
  { isTerminating }: { isTerminating: boolean },
): StatusError {
  const prefix = isTerminating ? "object is being deleted: " : "";
  return new StatusError(409, `${prefix}${resourceName(resource)} "${name}" already exists`, {
    reason: "AlreadyExists",
    details: detailsOf(resource, name),
  });
}

/** Somebody else wrote first. Clients branch on the reason and read again. */
export function conflict(
  resource: Resource,
  name: string,
  why = "the object has been modified; please apply your changes to the latest version and try again",
): StatusError {
  return new StatusError(
    409,
    `Operation cannot be fulfilled on ${resourceName(resource)} "${name}": ${why}`,
    {
      details: detailsOf(resource, name),
    },
  );
}

/** A precondition of a delete does not hold; such answers name the kind, not the plural. */
export function preconditionFailed(resource: Resource, name: string, why: string): StatusError {
  return new StatusError(409, `Operation cannot be fulfilled on ${resource.kind} "${name}": ${why}`, {
    details: { name, kind: resource.kind },
  });
}

/** 422 for an object. `what` is the Kind, or the plural for the one check that upstream reports so. */
export function invalid(
  what: { readonly group: string; readonly kind: string },
  name: string,
  problems: readonly FieldProblem[],
): StatusError {
  const texts = problems.map(({ field, message }) => `${field}: ${message}`);
  const text = texts.length === 1 ? texts.join() : `[${texts.join(", ")}]`;
  const subject = what.group === "" ? what.kind : `${what.kind}.${what.group}`;
  return new StatusError(422, `${subject} "${name}" is invalid: ${text}`, {
    details: {
      ...(name === "" ? {} : { name }),
      ...(what.group === "" ? {} : { group: what.group }),
      kind: what.kind,
      causes: problems.map(({ reason, message, field }) => ({ reason, message, field })),
    },
  });
}

/** 422 for the options of a request, such as ListOptions. */
export function invalidOptions(kind: string, ...problems: FieldProblem[]): StatusError {
  return invalid({ group: "meta.k8s.io", kind }, "", problems);
}

/** A history that does not reach back that far. client-go answers it with a new list. */
export function expired(message: string, metadata: { readonly continue?: string } = {}): StatusError {
  return new StatusError(410, message, { metadata });
}

/** A version we have not reached within the time a request may wait for it. */
export function versionTooLarge(asked: number, current: number): StatusError {
  return new StatusError(504, `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
    headers: { "retry-after": "1" },
  });
}

/** The server stops before the request was run, so it may be sent again. */
export function shuttingDown(): StatusError {
  return new StatusError(503, "the server is shutting down; send the request again", {
    details: { retryAfterSeconds: 1 },
    headers: { "retry-after": "1" },
  });
}

/** What is sent for anything thrown; undefined for what is a fault of ours. */
export function toStatusError(error: unknown): StatusError | undefined {
  if (error instanceof StatusError) return error;
  if (isKubeError(error, "BadRequest", "BadInput")) return badRequest(withoutCode(error));
  if (isKubeError(error, "RequestEntityTooLarge")) return new StatusError(413, withoutCode(error));
  if (error instanceof StoreError) return storeRefused(error);
  return undefined;
}

/**
 * The disk says no; reads go on. `Retry-After` promises that nothing was written, so that clients repeat the request:
 * after `WriteFailed` that is not known, and whoever asked has to look. Not for `Full` either: kubectl repeats ten times
 * without a word, which was 100 s of silence for somebody who has to make room.
 */
function storeRefused({ code, message }: StoreError): StatusError {
  const text = `the object could not be stored: ${message}`;
  if (code === "WriteFailed" || code === "Full") return new StatusError(503, text);
  const [status, seconds] = code === "Overloaded" ? [429, 1] : [503, 10];
  return new StatusError(status, text, {
    details: { retryAfterSeconds: seconds },
    headers: { "retry-after": String(seconds) },
  });
}

export function toResponse({ status, headers }: StatusError): HandlerResponse {
  return {
    status: status.code,
    headers: { "content-type": "application/json", ...headers },
    body: `${JSON.stringify(status)}\n`,
  };
}

function withoutCode({ code, message }: { code: string; message: string }): string {
  return message.slice(`${code}: `.length);
}

function detailsOf({ group, plural }: Resource, name: string | undefined): StatusDetails {
  return {
    ...(name === undefined || name === "" ? {} : { name }),
    ...(group === "" ? {} : { group }),
    kind: plural,
  };
}
