import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { parseApplyBody } from "../apply/apply-body.ts";
import { parseApplyOptions } from "../apply/apply-options.ts";
import { applyPatch } from "../apply/apply.ts";
import { applyConflict } from "../apply/conflicts.ts";
import { StatusError } from "../errors.ts";
import { bodyText } from "../negotiation.ts";
import type { ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { replaceObject } from "../replace.ts";
import { keyFor, objectResponse, type ResourceRequest, type VerbDeps } from "../request.ts";
import { decodePatched } from "../schema/body.ts";
import { checkNamespace, createObject } from "./create.ts";
import { checkName } from "./update.ts";

/** Server-side apply: the fields a manager wants, merged with what others own; creates what is not there. */
export async function apply(deps: VerbDeps, request: ResourceRequest) {
  const { kind, namespace, name, subresource, query, rights } = request;
  const { dryRun, fieldValidation } = parseWriteOptions(query, "PatchOptions");
  const options = parseApplyOptions(query);
  const patchText = bodyText(request.body);
  const { applied, warnings } = parseApplyBody(patchText, fieldValidation);
  let managedFields: readonly ManagedFieldsEntry[] | undefined;

  function desire(live: ApiObject | undefined): ApiObject {
    const now = deps.clock.wall();
    const outcome = applyPatch({ kind, name, live, applied, ...options, subresource, now });
    if (outcome.kind === "conflict") throw applyConflict(outcome.conflicts);
    managedFields = outcome.managedFields;
    const { object } = decodePatched(kind, outcome.object, { fieldValidation, patchText });
    checkName(object, name);
    checkNamespace(object, namespace);
    return { ...object, metadata: { ...object.metadata, name } };
  }
  const track = () => managedFields;
  const key = keyFor(kind, namespace, name);

  if (deps.store.get(key) === undefined) {
    rights.checkCreate();
    try {
      const text = await createObject(deps, kind, {
        namespace,
        object: desire(undefined),
        dryRun,
        rights,
        track,
      });
      return objectResponse(201, text, warnings);
    } catch (error) {
      // Somebody else created it meanwhile: then there is something to merge with.
      if (!(error instanceof StatusError && error.status.reason === "AlreadyExists")) throw error;
    }
  }
  const text = await replaceObject(deps, {
    kind,
    key,
    subresource,
    dryRun,
    desire,
    rights,
    track,
    isPatch: true,
  });
  return objectResponse(200, text, warnings);
}
