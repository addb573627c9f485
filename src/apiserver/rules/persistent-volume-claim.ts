import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from "kubernetes-types/core/v1.js";
import { invalidFor, invalidValue, oneOf, required, requiredText, type Cause } from "./causes.ts";
import { validateClaimChange } from "./claim-change.ts";
import type { RuleParts } from "./kind-rules.ts";
import { without, withDefaults, type Loose, type LooseObject } from "./loose.ts";
import { validateAccessModes, VOLUME_MODES } from "./persistent-volume-spec.ts";
import { notNegativeAmount, positiveAmount, sameValue } from "./quantities.ts";
import { validateLabelSelector } from "./selectors.ts";
import { subdomainProblems } from "./text-rules.ts";

export type ClaimObject = LooseObject<PersistentVolumeClaim>;
export type ClaimSpec = Loose<PersistentVolumeClaimSpec>;

export const persistentVolumeClaimRules: RuleParts<ClaimObject> = {
  applyDefaults: (object) => ({
    ...object,
    spec: claimSpecDefaults(object.spec ?? {}),
    status: withDefaults(object.status ?? {}, PENDING),
  }),

  prepareCreate: (object) => ({ ...object, spec: syncDataSources(object.spec ?? {}, {}), status: PENDING }),

  prepareUpdate: (object, old) => ({ ...object, spec: syncDataSources(object.spec ?? {}, old.spec ?? {}) }),

  validate: ({ spec = {} }) => validateClaimSpec("spec", spec),

  validateChange: validateClaimChange,

  validateStatus: ({ status = {} }) =>
    Object.entries(status.capacity ?? {}).flatMap(([name, amount]) =>
      notNegativeAmount(`status.capacity[${name}]`, amount),
    ),
};

const PENDING = { phase: "Pending" } as const;

export function claimSpecDefaults(spec: ClaimSpec): ClaimSpec {
  return withDefaults(spec, { volumeMode: "Filesystem" });
}

/** Also for the template of an ephemeral volume of a pod. */
export function validateClaimSpec(field: string, spec: ClaimSpec): Cause[] {
  const { accessModes = [], storageClassName = "", volumeAttributesClassName = "" } = spec;
  const storage = spec.resources?.requests?.["storage"];
  return [
    ...(accessModes.length === 0
      ? [required(`${field}.accessModes`, "at least 1 access mode is required")]
      : []),
    ...validateLabelSelector(`${field}.selector`, spec.selector),
    ...validateAccessModes(`${field}.accessModes`, accessModes),
    ...(storage === undefined
      ? [required(`${field}.resources[storage]`)]
      : positiveAmount(`${field}.resources[storage]`, storage)),
    ...validateClass(`${field}.storageClassName`, storageClassName),
    ...oneOf(`${field}.volumeMode`, spec.volumeMode, VOLUME_MODES),
    ...validateDataSource(`${field}.dataSource`, spec.dataSource),
    ...validateDataSource(`${field}.dataSourceRef`, spec.dataSourceRef),
    ...validateDataSourcesAgree(field, spec),
    ...validateClass(`${field}.volumeAttributesClassName`, volumeAttributesClassName),
  ];
}

function validateClass(field: string, name: string): Cause[] {
  return name === "" ? [] : invalidFor(field, name, subdomainProblems(name));
}

type DataSource = ClaimSpec["dataSourceRef"];

function validateDataSource(field: string, source: DataSource): Cause[] {
  if (source === undefined) return [];
  const { apiGroup = "", kind = "", name } = source;
  return [
    ...requiredText(`${field}.name`, name),
    ...requiredText(`${field}.kind`, kind),
    ...(apiGroup === "" && kind !== "PersistentVolumeClaim"
      ? [invalidValue(field, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")]
      : []),
    ...(apiGroup === "" ? [] : invalidFor(`${field}.apiGroup`, apiGroup, subdomainProblems(apiGroup))),
  ];
}

function validateDataSourcesAgree(field: string, { dataSource, dataSourceRef }: ClaimSpec): Cause[] {
  if (dataSource === undefined || dataSourceRef === undefined) return [];
  if (sameValue(dataSource, dataSourceRef)) return [];
  return [invalidValue(field, `${field}.dataSource`, "must match dataSourceRef")];
}

/**
 * `dataSource` is the older spelling. What it cannot name is dropped without a word, as servers did
 * before there was a `dataSourceRef`, unless the claim was stored with one; then each is copied into
 * the other.
 */
function syncDataSources(spec: ClaimSpec, old: ClaimSpec): ClaimSpec {
  const isStored = old.dataSource !== undefined || old.dataSourceRef !== undefined;
  const kept: ClaimSpec = isStored || isClaimOrSnapshot(spec.dataSource) ? spec : without(spec, "dataSource");
  const { dataSource, dataSourceRef } = kept;
  if (dataSource !== undefined && dataSourceRef === undefined) return { ...kept, dataSourceRef: dataSource };
  const isLocal = (dataSourceRef?.namespace ?? "") === "";
  if (dataSourceRef === undefined || dataSource !== undefined || !isLocal) return kept;
  return { ...kept, dataSource: without(dataSourceRef, "namespace") };
}

function isClaimOrSnapshot(source: ClaimSpec["dataSource"]): boolean {
  if (source === undefined) return true;
  const group = source.apiGroup ?? "";
  if (source.kind === "PersistentVolumeClaim") return group === "";
  return source.kind === "VolumeSnapshot" && group === "snapshot.storage.k8s.io";
}
