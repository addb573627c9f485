import { invalid } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { admit, review, type AdmissionDeps, type AdmissionOptions } from "./admission.ts";
import type { Causes } from "./causes.ts";
import { rulesFor } from "./rules.ts";

/**
 * The object that a create stores: point 10 of the order of checks (spec/apiserver.md, section 5).
 * `object` has its final metadata. Throws the answer when there is nothing to store.
 */
export function decideCreate(
  deps: AdmissionDeps,
  { kind, object, now }: { kind: Kind; object: ApiObject; now: Date },
  options?: AdmissionOptions,
): ApiObject {
  const rules = rulesFor(kind);
  const defaulted = rules.applyDefaults(object);
  const admitted = admit(deps, { operation: "CREATE", kind, object: defaulted }, options);
  const prepared = rules.prepareCreate(admitted, { now });
  refuse(kind, prepared, rules.validateCreate(prepared));
  return prepared;
}

export interface Update {
  readonly kind: Kind;
  /** As wanted; the fields of its metadata that only the server sets are those of `old`. */
  readonly object: ApiObject;
  readonly old: ApiObject;
  readonly subresource: "status" | undefined;
  readonly now: Date;
}

/** The object that takes the place of `old`. */
export function decideUpdate(
  deps: AdmissionDeps,
  { kind, object, old, subresource, now }: Update,
  options?: AdmissionOptions,
): ApiObject {
  const rules = rulesFor(kind);
  const request = { operation: "UPDATE", kind, old, subresource } as const;
  const admitted = admit(deps, { ...request, object: rules.applyDefaults(object) }, options);
  if (subresource === "status") {
    const prepared = rules.prepareStatusUpdate(admitted, old, { now });
    refuse(kind, prepared, rules.validateStatusUpdate(prepared, old));
    return prepared;
  }
  const prepared = rules.prepareUpdate(admitted, old, { now });
  refuse(kind, prepared, rules.validateUpdate(prepared, old));
  review(deps, { ...request, object: prepared });
  return prepared;
}

function refuse(kind: Kind, { metadata }: ApiObject, causes: Causes): void {
  if (causes.length === 0) return;
  // Events are judged in the spelling of core/v1, and are said to be of it.
  const what = kind.kind === "Event" ? { group: "", kind: "Event" } : kind;
  throw invalid(what, metadata.name ?? "", causes);
}
