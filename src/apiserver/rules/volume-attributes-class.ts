import { forbiddenField, required } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";
import { validateParameters, validateProvisioner } from "./storage-class.ts";

/** storage.k8s.io/v1 since 1.34. */
type VolumeAttributesClass = LooseObject<{ driverName: string; parameters: Record<string, string> }>;

export const volumeAttributesClassRules: RuleParts<VolumeAttributesClass> = {
  validate({ driverName, parameters = {} }) {
    const isEmpty = Object.keys(parameters).length === 0;
    return [
      ...validateProvisioner("driverName", driverName),
      ...(isEmpty ? [required("parameters", "must contain at least one key/value pair")] : []),
      ...validateParameters(parameters),
    ];
  },

  validateChange: (object, old) =>
    (["driverName", "parameters"] as const)
      .filter((field) => !sameValue(object[field], old[field]))
      .map((field) => forbiddenField(field, `updates to ${field} are forbidden.`)),
};
