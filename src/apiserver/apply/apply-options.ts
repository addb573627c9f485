import { invalidOptions, type FieldProblem } from "../errors.ts";
import { flag } from "../options.ts";

export interface ApplyOptions {
  readonly manager: string;
  /** Take fields from whoever owns them. */
  readonly force: boolean;
}

/** The options of an apply beyond those of every write. Whoever applies must say who it is. */
export function parseApplyOptions(query: URLSearchParams): ApplyOptions {
  const manager = query.get("fieldManager") ?? "";
  if (manager === "") {
    throw invalidOptions("PatchOptions", {
      field: "fieldManager",
      reason: "FieldValueRequired",
      message: "Required value: is required for apply patch",
    });
  }
  return { manager, force: flag(query, "force") ?? false };
}

/** For every other kind of patch. */
export function refuseForce(query: URLSearchParams): void {
  if (!query.has("force")) return;
  const problem: FieldProblem = {
    field: "force",
    reason: "FieldValueForbidden",
    message: "Forbidden: may not be specified for non-apply patch",
  };
  throw invalidOptions("PatchOptions", problem);
}
