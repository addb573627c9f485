import type { Namespace } from "kubernetes-types/core/v1.js";
import { invalidFor, invalidValue, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { defined, withDefaults, type LooseObject } from "./loose.ts";
import { finalizerNameCauses } from "./metadata.ts";
import { qualifiedNameProblems } from "./text-rules.ts";

type NamespaceObject = LooseObject<Namespace>;

/** Holds a namespace until its content is gone; taken away through `/finalize` only. */
const CONTENT_FINALIZER = "kubernetes";

export const namespaceRules: RuleParts<NamespaceObject> = {
  applyDefaults: (object) => withNameLabel({ ...object, status: withDefaults(object.status ?? {}, ACTIVE) }),

  prepareCreate(object) {
    const finalizers = object.spec?.finalizers ?? [];
    const all = finalizers.includes(CONTENT_FINALIZER) ? finalizers : [...finalizers, CONTENT_FINALIZER];
    return { ...object, spec: { ...object.spec, finalizers: all }, status: ACTIVE };
  },

  prepareUpdate: (object, old) => ({
    ...object,
    spec: { ...object.spec, ...defined({ finalizers: old.spec?.finalizers }) },
  }),

  validate: validateContentFinalizers,

  validateStatus({ metadata, status }) {
    const expected = metadata.deletionTimestamp === undefined ? "Active" : "Terminating";
    if (status?.phase === expected) return [];
    const isEmpty = expected === "Active" ? "empty" : "not empty";
    const detail = `may only be '${expected}' if \`deletionTimestamp\` is ${isEmpty}`;
    return [invalidValue("status.Phase", status?.phase ?? "", detail)];
  },
};

/** What a PUT to `/finalize` stores: the finalizers of the request, and all else as it was. */
export function finalizeNamespace(current: NamespaceObject, desired: NamespaceObject): NamespaceObject {
  const finalizers = desired.spec?.finalizers ?? [];
  const { finalizers: _finalizers, ...spec } = current.spec ?? {};
  return { ...current, spec: finalizers.length === 0 ? spec : { ...spec, finalizers } };
}

const ACTIVE = { phase: "Active" } as const;

function validateContentFinalizers({ spec }: NamespaceObject): Cause[] {
  const field = "spec.finalizers";
  return (spec?.finalizers ?? []).flatMap((finalizer) => [
    ...invalidFor(field, finalizer, qualifiedNameProblems(finalizer)),
    ...finalizerNameCauses(field, finalizer),
  ]);
}

/** Selectors know labels only, so every namespace carries its name as one. */
function withNameLabel(object: NamespaceObject): NamespaceObject {
  const { metadata } = object;
  const labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name ?? "" };
  return { ...object, metadata: { ...metadata, labels } };
}
