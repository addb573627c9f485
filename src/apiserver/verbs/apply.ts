import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { parseApplyBody } from "../apply/apply-body.ts";
import { parseApplyOptions } from "../apply/apply-options.ts";
import { applyPatch } from "../apply/apply.ts";
import { applyConflict } from "../apply/conflicts.ts";
import { bodyText } from "../negotiation.ts";
import type { ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import type { ResourceRequest, VerbDeps } from "../request.ts";
import { storePatched } from "./patched.ts";

/** Server-side apply: the fields a manager wants, merged with what others own; creates what is not there. */
export async function apply(deps: VerbDeps, request: ResourceRequest) {
  const { kind, name, subresource, query } = request;
  const { dryRun, fieldValidation } = parseWriteOptions(query, "PatchOptions");
  const options = parseApplyOptions(query);
  const { applied, duplicates } = parseApplyBody(bodyText(request.body), fieldValidation);
  let managedFields: readonly ManagedFieldsEntry[] | undefined;

  function change(live: ApiObject | undefined): unknown {
    const now = deps.clock.wall();
    const outcome = applyPatch({ kind, name, live, applied, ...options, subresource, now });
    if (outcome.kind === "conflict") throw applyConflict(outcome.conflicts);
    managedFields = outcome.managedFields;
    return outcome.object;
  }
  const track = () => managedFields;
  return storePatched(deps, request, {
    change,
    track,
    duplicates: () => duplicates,
    createsMissing: true,
    dryRun,
    fieldValidation,
  });
}
