import type { CSIStorageCapacity } from "kubernetes-types/storage/v1.js";
import { IMMUTABLE, invalidFor, invalidValue } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import type { LooseObject } from "./loose.ts";
import { notNegativeAmount, sameValue } from "./quantities.ts";
import { validateLabelSelector } from "./selectors.ts";
import { subdomainProblems } from "./text-rules.ts";

export const csiStorageCapacityRules: RuleParts<LooseObject<CSIStorageCapacity>> = {
  validate({ nodeTopology, storageClassName = "", capacity, maximumVolumeSize }) {
    return [
      ...validateLabelSelector("nodeTopology", nodeTopology),
      ...invalidFor("storageClassName", storageClassName, subdomainProblems(storageClassName)),
      ...notNegativeAmount("capacity", capacity),
      ...notNegativeAmount("maximumVolumeSize", maximumVolumeSize),
    ];
  },

  validateChange: (object, old) =>
    (["nodeTopology", "storageClassName"] as const)
      .filter((field) => !sameValue(object[field], old[field]))
      .map((field) => invalidValue(field, object[field], IMMUTABLE)),
};
