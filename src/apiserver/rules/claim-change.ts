import { forbiddenField, IMMUTABLE, invalidValue, type Cause } from "./causes.ts";
import { without } from "./loose.ts";
import type { ClaimObject, ClaimSpec } from "./persistent-volume-claim.ts";
import { compareAmounts, sameValue } from "./quantities.ts";

/** Where a class stood before there was a field for it. */
const CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

/**
 * A claim is a promise, so hardly anything in it changes: it is bound once, may be given a class once,
 * and while it is bound may ask for more room and for another attributes class.
 */
export function validateClaimChange(object: ClaimObject, old: ClaimObject): Cause[] {
  const isBound = object.status?.phase === "Bound";
  const [spec, oldSpec] = [object.spec ?? {}, old.spec ?? {}];
  const compared = asIfUnchanged(object, old, { isBound });
  const mutable = "resources.requests and volumeAttributesClassName for bound claims";
  return [
    ...(sameValue(compared, oldSpec)
      ? []
      : [forbiddenField("spec", `spec is immutable after creation except ${mutable}`)]),
    ...validateShrinking(spec, old),
    ...(spec.volumeMode === oldSpec.volumeMode
      ? []
      : [invalidValue("volumeMode", spec.volumeMode, IMMUTABLE)]),
    ...validateClassAnnotation(object, old),
    ...((oldSpec.volumeAttributesClassName ?? "") !== "" && (spec.volumeAttributesClassName ?? "") === ""
      ? [forbiddenField("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")]
      : []),
  ];
}

/** The wanted spec with every change that is allowed taken back. */
function asIfUnchanged(object: ClaimObject, old: ClaimObject, { isBound }: { isBound: boolean }): ClaimSpec {
  const [spec, oldSpec] = [object.spec ?? {}, old.spec ?? {}];
  const restored: (keyof ClaimSpec)[] = [
    ...((oldSpec.volumeName ?? "") === "" ? (["volumeName"] as const) : []),
    ...(mayChooseClass(object, old) ? (["storageClassName"] as const) : []),
    ...(isBound ? (["volumeAttributesClassName"] as const) : []),
  ];
  const storage = oldSpec.resources?.requests?.["storage"];
  const resources =
    isBound && storage !== undefined
      ? { resources: { ...spec.resources, requests: { ...spec.resources?.requests, storage } } }
      : {};
  const kept = Object.fromEntries(
    restored.filter((field) => oldSpec[field] !== undefined).map((field) => [field, oldSpec[field]]),
  );
  return { ...without(spec, ...restored), ...kept, ...resources };
}

function mayChooseClass(object: ClaimObject, old: ClaimObject): boolean {
  const wanted = object.spec?.storageClassName ?? "";
  if (old.spec?.storageClassName !== undefined || wanted === "") return false;
  const annotated = old.metadata.annotations?.[CLASS_ANNOTATION] ?? "";
  return annotated === "" || annotated === wanted;
}

/** Down to, but not including, what is there already: a growth that failed can be asked for again, smaller. */
function validateShrinking(spec: ClaimSpec, old: ClaimObject): Cause[] {
  const wanted = spec.resources?.requests?.["storage"];
  const before = old.spec?.resources?.requests?.["storage"];
  const capacity = old.status?.capacity?.["storage"];
  if (compareAmounts(wanted, before) >= 0 || compareAmounts(wanted, capacity) > 0) return [];
  return [forbiddenField("spec.resources.requests.storage", "field can not be less than status.capacity")];
}

function validateClassAnnotation(object: ClaimObject, old: ClaimObject): Cause[] {
  const value = object.metadata.annotations?.[CLASS_ANNOTATION];
  const before = old.metadata.annotations?.[CLASS_ANNOTATION];
  // It may go once the field says the same.
  if (value === before || (value === undefined && object.spec?.storageClassName === before)) return [];
  return [invalidValue("metadata.annotations", value ?? "", IMMUTABLE)];
}
