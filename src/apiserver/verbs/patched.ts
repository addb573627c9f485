import type { HandlerResponse } from "../../kube/handler.ts";
import { StatusError } from "../errors.ts";
import type { ApiObject } from "../objects.ts";
import { replaceObject } from "../replace.ts";
import { keyFor, objectResponse, requesterOf, type ResourceRequest, type VerbDeps } from "../request.ts";
import { decodePatched, type FieldValidation } from "../schema/body.ts";
import { toKept, toShown } from "../spelling.ts";
import type { Track } from "../tracking.ts";
import { checkNamespace, createObject } from "./create.ts";
import { checkName } from "./update.ts";

/** A patch of any type, read and understood. */
export interface Patch {
  /** What it makes of an object as its client sees it; of none only where it creates what is missing. */
  readonly change: (shown: ApiObject | undefined) => unknown;
  readonly track: Track;
  /** Keys that its text says twice; asked for once it has been found to apply. */
  readonly duplicates: () => readonly string[];
  readonly createsMissing: boolean;
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

/** The way every patch takes in the end: its outcome is checked as a body would be, then stored as a PUT or a POST would. */
export async function storePatched(
  deps: VerbDeps,
  request: ResourceRequest,
  { change, track, duplicates, createsMissing, dryRun, fieldValidation }: Patch,
): Promise<HandlerResponse> {
  const { kind, namespace, name, subresource, part, rights } = request;
  let warnings: readonly string[] = [];
  function desire(stored: ApiObject | undefined): ApiObject {
    const changed = change(stored === undefined ? undefined : toShown(kind, stored));
    const decoded = decodePatched(kind, changed, { fieldValidation, duplicates: duplicates() });
    checkName(decoded.object, name);
    checkNamespace(decoded.object, namespace);
    warnings = decoded.warnings;
    // A patch that takes the name away means nothing by it.
    return toKept(kind, { ...decoded.object, metadata: { ...decoded.object.metadata, name } });
  }

  const key = keyFor(kind, namespace, name);
  const common = { dryRun, rights, track, requester: requesterOf(request, { dryRun }) };
  if (createsMissing && deps.store.get(key) === undefined) {
    rights.checkCreate();
    const object = desire(undefined);
    const text = await unlessTaken(createObject(deps, kind, { namespace, object, ...common }));
    if (text !== undefined) return objectResponse(201, text, warnings);
  }
  const replacement = { kind, key, subresource, part, desire, isPatch: true, ...common };
  const text = await replaceObject(deps, replacement);
  return objectResponse(200, text, warnings);
}

/** Undefined if somebody else created it meanwhile: then there is something to change. */
async function unlessTaken(creating: Promise<string>): Promise<string | undefined> {
  try {
    return await creating;
  } catch (error) {
    if (error instanceof StatusError && error.status.reason === "AlreadyExists") return undefined;
    throw error;
  }
}
