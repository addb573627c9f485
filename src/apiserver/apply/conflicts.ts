import { StatusError } from "../errors.ts";
import { pathsOf, type FieldSet } from "./field-set.ts";
import { managerId, type Manager } from "./managed-fields.ts";
import { describePath } from "./path-element.ts";

/** A field that somebody else owns and an apply would change. */
export interface Conflict {
  /** As messages name it: `"m1"`, or `"golden" with subresource "status" using v1` for one that does not apply. */
  readonly manager: string;
  /** `.spec.containers[name="c"].image` */
  readonly path: string;
}

/** Of each manager the fields it would lose, managers in the order in which messages list them. */
export function conflictsWith(losses: readonly (readonly [Manager, FieldSet])[]): readonly Conflict[] {
  return [...losses]
    .sort(([a], [b]) => (managerId(a) < managerId(b) ? -1 : 1))
    .flatMap(([manager, fields]) =>
      pathsOf(fields).map((path) => ({ manager: describeManager(manager), path: describePath(path) })),
    );
}

/** 409 in the words that kubectl shows and explains. */
export function applyConflict(conflicts: readonly Conflict[]): StatusError {
  const causes = conflicts.map(({ manager, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${manager}`,
    field: path,
  }));
  return new StatusError(409, describeConflicts(conflicts), { reason: "Conflict", details: { causes } });
}

function describeConflicts(conflicts: readonly Conflict[]): string {
  const [first, ...others] = conflicts;
  if (first !== undefined && others.length === 0) {
    return `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.path}`;
  }
  const lines = conflicts.flatMap(({ manager, path }, index) => {
    const isFirstOfManager = conflicts[index - 1]?.manager !== manager;
    return isFirstOfManager ? [`conflicts with ${manager}:`, `- ${path}`] : [`- ${path}`];
  });
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function describeManager({ manager, operation, apiVersion, subresource }: Manager): string {
  const name = JSON.stringify(manager);
  const through =
    subresource === undefined ? name : `${name} with subresource ${JSON.stringify(subresource)}`;
  return operation === "Update" ? `${through} using ${apiVersion}` : through;
}
