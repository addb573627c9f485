import type { CSIDriver, CSIDriverSpec, TokenRequest } from "kubernetes-types/storage/v1.js";
import { duplicate, IMMUTABLE, invalidValue, oneOf, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { sameValue } from "./quantities.ts";

interface NewerFields {
  /** 1.33 */
  nodeAllocatableUpdatePeriodSeconds?: number;
  /** 1.37 */
  preventPodSchedulingIfMissing?: boolean;
}

type CSIDriverObject = LooseObject<Omit<CSIDriver, "spec"> & { spec: CSIDriverSpec & NewerFields }>;

const DEFAULTS: Loose<CSIDriverSpec & NewerFields> = {
  attachRequired: true,
  podInfoOnMount: false,
  storageCapacity: false,
  fsGroupPolicy: "ReadWriteOnceWithFSType",
  volumeLifecycleModes: ["Persistent"],
  requiresRepublish: false,
  seLinuxMount: false,
  preventPodSchedulingIfMissing: false,
};

/** How often a node may be asked anew for its limit: an rpc to every driver on every node. */
const UPDATE_PERIOD_SECONDS_MIN = 10;

export const csiDriverRules: RuleParts<CSIDriverObject> = {
  applyDefaults: (object) => ({ ...object, spec: withDefaults(object.spec ?? {}, DEFAULTS) }),

  validate({ spec = {} }) {
    const { tokenRequests = [], volumeLifecycleModes = [], fsGroupPolicy } = spec;
    return [
      ...volumeLifecycleModes.flatMap((mode) =>
        oneOf("spec.volumeLifecycleModes", mode, ["Persistent", "Ephemeral"]),
      ),
      ...oneOf("spec.fsGroupPolicy", fsGroupPolicy, ["File", "None", "ReadWriteOnceWithFSType"]),
      ...validateTokenRequests("spec.tokenRequests", tokenRequests),
      ...validateUpdatePeriod(spec.nodeAllocatableUpdatePeriodSeconds),
    ];
  },

  validateChange({ spec = {} }, { spec: old = {} }) {
    // The first name is how the real server spells it.
    const modes = "spec.volumeLifecycleModes";
    return [
      ...(spec.attachRequired === old.attachRequired
        ? []
        : [invalidValue("spec.attachedRequired", spec.attachRequired, IMMUTABLE)]),
      ...(sameValue(spec.volumeLifecycleModes, old.volumeLifecycleModes)
        ? []
        : [invalidValue(modes, spec.volumeLifecycleModes, IMMUTABLE)]),
    ];
  },
};

function validateTokenRequests(field: string, requests: readonly Loose<TokenRequest>[]): Cause[] {
  const audiences = requests.map(({ audience = "" }) => audience);
  return requests.flatMap(({ audience = "", expirationSeconds }, index) =>
    audiences.indexOf(audience) < index
      ? [duplicate(`${field}[${index}].audience`, audience)]
      : tokenLifetimeCauses(`${field}[${index}].expirationSeconds`, expirationSeconds),
  );
}

/** From ten minutes, below which nodes would do nothing but renew, to what fits 32 bits. */
export function tokenLifetimeCauses(field: string, seconds: number | undefined): Cause[] {
  if (seconds === undefined) return [];
  if (seconds < 600) return [invalidValue(field, seconds, "may not specify a duration less than 10 minutes")];
  if (seconds <= 2 ** 32) return [];
  return [invalidValue(field, seconds, "may not specify a duration larger than 2^32 seconds")];
}

function validateUpdatePeriod(seconds: number | undefined): Cause[] {
  if (seconds === undefined || seconds >= UPDATE_PERIOD_SECONDS_MIN) return [];
  const detail = `must be greater than or equal to ${UPDATE_PERIOD_SECONDS_MIN} seconds`;
  return [invalidValue("spec.nodeAllocatableUpdatePeriodSeconds", seconds, detail)];
}
