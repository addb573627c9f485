import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { forbidden, notFound, StatusError } from "../errors.ts";
import { namespaces, type Kind } from "../kinds.ts";
import type { AdmissionDeps } from "./admission.ts";

/** NamespaceLifecycle: nothing new in a namespace that is not there, or on its way out. */
export function checkNamespace(deps: AdmissionDeps, kind: Kind, { namespace = "", name }: ObjectMeta): void {
  const found = deps.getObject("namespaces", undefined, namespace);
  if (found === undefined) throw notFound(namespaces, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { status } = forbidden(kind, name, why);
  const cause = {
    reason: "NamespaceTerminating",
    message: `namespace ${namespace} is being terminated`,
    field: "metadata.namespace",
  };
  throw new StatusError(403, status.message, { details: { ...status.details, causes: [cause] } });
}
