import { invalid } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import {
  admit,
  review,
  type AdmissionDeps,
  type AdmissionOptions,
  type AdmissionRequest,
} from "./admission.ts";
import type { PodPart } from "../request.ts";
import type { Causes } from "./causes.ts";
import { validatePart, withPart } from "./pod-parts.ts";
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
  const admitted = admitAll(deps, { operation: "CREATE", kind, object }, options);
  const prepared = rules.prepareCreate(admitted, { now });
  refuse(kind, prepared, rules.validateCreate(prepared));
  const request = { operation: "CREATE", kind, object: prepared } as const;
  review(deps, request);
  deps.policies?.validate(request);
  return prepared;
}

/** Defaults, then the server's own plugins, then policies, which may bring both about again. */
function admitAll(deps: AdmissionDeps, request: AdmissionRequest, options?: AdmissionOptions): ApiObject {
  const rules = rulesFor(request.kind);
  const settle = (object: ApiObject) =>
    admit(deps, { ...request, object: rules.applyDefaults(object) }, options);
  const admitted = settle(request.object);
  return deps.policies?.mutate({ ...request, object: admitted }, settle) ?? admitted;
}

export interface Update {
  readonly kind: Kind;
  /** As wanted; the fields of its metadata that only the server sets are those of `old`. */
  readonly object: ApiObject;
  readonly old: ApiObject;
  readonly subresource: "status" | undefined;
  readonly part?: PodPart | undefined;
  readonly now: Date;
}

/** The object that takes the place of `old`. */
export function decideUpdate(
  deps: AdmissionDeps,
  { kind, object, old, subresource, part, now }: Update,
  options?: AdmissionOptions,
): ApiObject {
  const rules = rulesFor(kind);
  const request = { operation: "UPDATE", kind, old, subresource } as const;
  const admitted = admitAll(deps, { ...request, object }, options);
  const [next, causes] = judge();
  refuse(kind, next, causes);
  if (subresource === undefined && part === undefined) review(deps, { ...request, object: next });
  deps.policies?.validate({ ...request, object: next });
  return next;

  function judge(): [ApiObject, Causes] {
    if (subresource === "status") {
      const prepared = rules.prepareStatusUpdate(admitted, old, { now });
      return [prepared, rules.validateStatusUpdate(prepared, old)];
    }
    if (part !== undefined) {
      const changed = withPart(part, admitted, old);
      return [changed, validatePart(part, changed, old)];
    }
    const prepared = rules.prepareUpdate(admitted, old, { now });
    return [prepared, rules.validateUpdate(prepared, old)];
  }
}

function refuse(kind: Kind, { metadata }: ApiObject, causes: Causes): void {
  if (causes.length === 0) return;
  // Events are judged in the spelling of core/v1, and are said to be of it.
  const what = kind.kind === "Event" ? { group: "", kind: "Event" } : kind;
  throw invalid(what, metadata.name ?? "", causes);
}
