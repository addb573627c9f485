import type { StorageClass } from "kubernetes-types/storage/v1.js";
import { IMMUTABLE, invalidFor, invalidValue, oneOf, required, tooLong, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";
import { validateTopologies } from "./selectors.ts";
import { qualifiedNameProblems } from "./text-rules.ts";

const PARAMETERS_MAX = 512;
const PARAMETER_BYTES_MAX = 256 * 1_024;

export const storageClassRules: RuleParts<LooseObject<StorageClass>> = {
  applyDefaults: (object) =>
    withDefaults(object, { reclaimPolicy: "Delete", volumeBindingMode: "Immediate" }),

  validate(object) {
    const { provisioner, parameters, reclaimPolicy, volumeBindingMode, allowedTopologies } = object;
    return [
      ...validateProvisioner("provisioner", provisioner),
      ...validateParameters(parameters),
      ...oneOf("reclaimPolicy", reclaimPolicy, ["Delete", "Retain"]),
      ...oneOf("volumeBindingMode", volumeBindingMode, ["Immediate", "WaitForFirstConsumer"]),
      ...validateTopologies("allowedTopologies", allowedTopologies),
    ];
  },

  validateChange(object, old) {
    const fixed = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] as const;
    return fixed
      .filter((field) => !sameValue(object[field], old[field]))
      .map((field) => invalidValue(field, object[field], IMMUTABLE));
  },
};

/** Looked at in lower case, and shown so. */
export function validateProvisioner(field: string, provisioner = ""): Cause[] {
  if (provisioner === "") return [required(field)];
  const lower = provisioner.toLowerCase();
  return invalidFor(field, lower, qualifiedNameProblems(lower));
}

export function validateParameters(parameters: Readonly<Record<string, string | undefined>> = {}): Cause[] {
  const field = "parameters";
  const entries = Object.entries(parameters);
  let bytes = 0;
  for (const [key, value = ""] of entries) bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  return [
    ...(entries.length > PARAMETERS_MAX ? [tooLong(field, PARAMETERS_MAX)] : []),
    ...(Object.hasOwn(parameters, "") ? [invalidValue(field, "", "field can not be empty.")] : []),
    ...(bytes > PARAMETER_BYTES_MAX ? [tooLong(field, PARAMETER_BYTES_MAX)] : []),
  ];
}
