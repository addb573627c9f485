import type { Kind } from "../kinds.ts";
import { EMPTY, setOf, type FieldSet } from "./field-set.ts";
import { fieldElement, type Path } from "./path-element.ts";

/**
 * The fields that a write through this path cannot change, whatever it says about them: nobody comes to own a status
 * by a PUT that carries one along (spec/apiserver.md, section 10.6).
 */
export function resetFieldsOf(
  { kind, status }: Pick<Kind, "kind" | "status">,
  subresource: string | undefined,
): FieldSet {
  if (subresource !== "status") return status === "none" ? EMPTY : STATUS;
  if (status === "restore") return SPEC_AND_METADATA;
  return kind === "Pod" ? POD_STATUS : SPEC;
}

function path(...names: readonly string[]): Path {
  return names.map(fieldElement);
}

const STATUS = setOf(path("status"));
const SPEC = setOf(path("spec"));
const SPEC_AND_METADATA = setOf(path("spec"), path("metadata"));
const POD_STATUS = setOf(
  path("spec"),
  path("metadata", "deletionTimestamp"),
  path("metadata", "ownerReferences"),
);
