import { resourceName } from "../kube/object.ts";
import { KINDS, storedKind, type Kind } from "./kinds.ts";
import { shortForm, type ApiObject } from "./objects.ts";
import { policyAdmission } from "./policies/admission.ts";
import type { Requester } from "./policies/request.ts";
import type { VerbDeps } from "./request.ts";
import type { AdmissionDeps } from "./rules/admission.ts";
import type { StoredObject } from "./store/store.ts";
import { objectsUnderWay } from "./under-way.ts";

/** What admission may look at: the store, in the form in which rules judge objects. */
export function admissionDeps(
  { store, random }: VerbDeps,
  write?: { readonly kind: Kind; readonly requester: Requester | undefined },
): AdmissionDeps {
  const deps: AdmissionDeps = {
    random,
    getObject: (resource, namespace, name) => {
      const stored = store.get({ resource, namespace: namespace ?? "", name });
      return stored === undefined ? undefined : judged(stored);
    },
    listObjects: (resource, namespace) => [
      ...Array.from(store.scan({ resource, namespace }), judged),
      ...objectsUnderWay(store, resource, namespace),
    ],
  };
  if (write === undefined) return deps;
  return { ...deps, policies: policyAdmission(deps, store, write.kind, write.requester) };
}

const kindsByResource = new Map(KINDS.map((kind) => [resourceName(storedKind(kind)), storedKind(kind)]));

function judged(stored: StoredObject): ApiObject {
  const kind = kindsByResource.get(stored.key.resource);
  if (kind === undefined) throw new RangeError(`store: nothing is kept as ${stored.key.resource}`);
  return shortForm(kind, stored);
}
