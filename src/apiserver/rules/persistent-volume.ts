import type {
  PersistentVolume,
  PersistentVolumeSpec,
  PersistentVolumeStatus,
} from "kubernetes-types/core/v1.js";
import { toTimestamp } from "../objects.ts";
import { forbiddenField, IMMUTABLE, invalidValue, type Cause } from "./causes.ts";
import type { RuleParts } from "./kind-rules.ts";
import { without, withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { SOURCE_ORDER, validateVolumeSpec } from "./persistent-volume-spec.ts";
import { sameValue } from "./quantities.ts";
import { sourceDefaults } from "./volume-defaults.ts";

type VolumeObject = LooseObject<PersistentVolume>;
type VolumeSpec = Loose<PersistentVolumeSpec>;

export const persistentVolumeRules: RuleParts<VolumeObject> = {
  applyDefaults: (object) => ({
    ...object,
    spec: withDefaults(sourceDefaults(object.spec ?? {}), SPEC_DEFAULTS),
    status: withDefaults(object.status ?? {}, PENDING),
  }),

  prepareCreate: (object, { now }) => ({
    ...object,
    status: { ...PENDING, lastPhaseTransitionTime: toTimestamp(now) },
  }),

  prepareStatusUpdate: (object, old, { now }) => ({
    ...object,
    status: withTransitionTime(object.status ?? {}, old.status ?? {}, now),
  }),

  validate: ({ spec = {} }) => validateVolumeSpec("spec", spec),

  validateChange({ spec = {} }, { spec: old = {} }) {
    return [
      ...validateSourceChange(spec, old),
      ...(spec.volumeMode === old.volumeMode ? [] : [invalidValue("volumeMode", spec.volumeMode, IMMUTABLE)]),
      ...(old.nodeAffinity === undefined || sameValue(spec.nodeAffinity, old.nodeAffinity)
        ? []
        : [invalidValue("nodeAffinity", spec.nodeAffinity, IMMUTABLE)]),
      ...(old.volumeAttributesClassName !== undefined && spec.volumeAttributesClassName === undefined
        ? [forbiddenField("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")]
        : []),
    ];
  },
};

const SPEC_DEFAULTS: VolumeSpec = { persistentVolumeReclaimPolicy: "Retain", volumeMode: "Filesystem" };
const PENDING = { phase: "Pending" } as const;

/** The server notes when a phase began, unless whoever changed it says so himself. */
function withTransitionTime(
  status: Loose<PersistentVolumeStatus>,
  old: Loose<PersistentVolumeStatus>,
  now: Date,
): Loose<PersistentVolumeStatus> {
  if (status.phase === old.phase) return status;
  const given = status.lastPhaseTransitionTime;
  if (given !== undefined && given !== old.lastPhaseTransitionTime) return status;
  return { ...status, lastPhaseTransitionTime: toTimestamp(now) };
}

/** What a volume is does not change; only the secret for growing it may be named later, once. */
function validateSourceChange(spec: VolumeSpec, old: VolumeSpec): Cause[] {
  const namesSecret = old.csi !== undefined && old.csi.controllerExpandSecretRef === undefined;
  const compared: VolumeSpec =
    namesSecret && spec.csi !== undefined
      ? { ...spec, csi: without(spec.csi, "controllerExpandSecretRef") }
      : spec;
  if (SOURCE_ORDER.every((name) => sameValue(compared[name], old[name]))) return [];
  const field = "spec.persistentvolumesource";
  return [forbiddenField(field, `${field} is immutable after creation`)];
}
