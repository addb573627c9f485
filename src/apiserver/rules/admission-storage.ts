import type { StorageClass } from "kubernetes-types/storage/v1.js";
import { forbidden } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps } from "./admission.ts";
import type { LooseObject } from "./loose.ts";
import type { ClaimObject } from "./persistent-volume-claim.ts";
import { compareAmounts } from "./quantities.ts";

const CLASSES = "storageclasses.storage.k8s.io";
const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_ANNOTATIONS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];

/** StorageObjectInUseProtection: what a pod or a claim may still use does not go before they let go of it. */
export function protectFromDeletion(object: ApiObject, finalizer: string): ApiObject {
  const { metadata } = object;
  const { finalizers = [] } = metadata;
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...metadata, finalizers: [...finalizers, finalizer] } };
}

/** DefaultStorageClass: a claim that names no class gets the default one. "" names one: none. */
export function chooseClass(deps: AdmissionDeps, claim: ClaimObject): ApiObject {
  const isChosen =
    claim.spec?.storageClassName !== undefined ||
    claim.metadata.annotations?.[CLASS_ANNOTATION] !== undefined;
  const name = isChosen ? undefined : defaultClass(deps);
  return name === undefined ? claim : { ...claim, spec: { ...claim.spec, storageClassName: name } };
}

/** Of several the newest, so that making another one the default works before the first is unmade. */
function defaultClass(deps: AdmissionDeps): string | undefined {
  let [chosen, chosenAt] = [undefined as string | undefined, ""];
  for (const { metadata } of deps.listObjects(CLASSES)) {
    if (!DEFAULT_ANNOTATIONS.some((key) => metadata.annotations?.[key] === "true")) continue;
    // Times are RFC 3339 in UTC, which sort as text.
    const { name = "", creationTimestamp: createdAt = "" } = metadata;
    const isBetter = createdAt > chosenAt || (createdAt === chosenAt && name < (chosen ?? ""));
    if (chosen === undefined || isBetter) [chosen, chosenAt] = [name, createdAt];
  }
  return chosen;
}

/** PersistentVolumeClaimResize: only a class that says so can have its volumes grow. */
export function refuseResize(deps: AdmissionDeps, kind: Kind, claim: ClaimObject, old: ClaimObject): void {
  if (compareAmounts(requestOf(claim), requestOf(old)) <= 0) return;
  const name = claim.metadata.annotations?.[CLASS_ANNOTATION] ?? claim.spec?.storageClassName ?? "";
  const found = name === "" ? undefined : deps.getObject(CLASSES, undefined, name);
  const storageClass = found as LooseObject<StorageClass> | undefined;
  if (storageClass?.allowVolumeExpansion === true) return;
  throw forbidden(
    kind,
    claim.metadata.name,
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
  );
}

function requestOf({ spec }: ClaimObject): string | undefined {
  return spec?.resources?.requests?.["storage"];
}
