import type { ManagedFieldsEntry } from "kubernetes-types/meta/v1.js";
import { managerName } from "./apply/manager-name.ts";
import { trackUpdate } from "./apply/managers.ts";
import type { ApiObject } from "./objects.ts";
import type { ResourceRequest, VerbDeps } from "./request.ts";
import { rulesFor } from "./rules/rules.ts";
import { toShown } from "./spelling.ts";

/** Who owns which field after a write: of `before`, which is absent at a create, and what the client wants instead. */
export type Track = (
  before: ApiObject | undefined,
  after: ApiObject,
) => readonly ManagedFieldsEntry[] | undefined;

/** For what the server writes by itself: nobody gains or loses a field. */
export const untracked: Track = (before) => before?.metadata.managedFields;

/**
 * An ordinary write: what it changes becomes its sender's. Compared before admission adds anything, so that what the
 * server adds has no owner, and in the spelling of the request, since that is what its entry speaks.
 */
export function trackWrites(
  { clock }: VerbDeps,
  {
    kind,
    subresource,
    headers,
  }: Pick<ResourceRequest, "kind" | "headers"> & { readonly subresource: string | undefined },
  fieldManager: string | undefined,
): Track {
  const manager = managerName({ fieldManager, userAgent: headers["user-agent"] });
  return (before, after) =>
    trackUpdate({
      kind,
      before: before === undefined ? undefined : toShown(kind, before),
      after: rulesFor(kind).applyDefaults(toShown(kind, after)),
      manager,
      subresource,
      now: clock.wall(),
    });
}
