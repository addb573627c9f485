import type { PersistentVolumeSpec, VolumeNodeAffinity } from "kubernetes-types/core/v1.js";
import { isJsonObject } from "../../kube/patch/json.ts";
import { forbiddenField, invalidFor, notSupported, oneOf, required, type Cause } from "./causes.ts";
import type { Loose } from "./loose.ts";
import { positiveAmount, type ResourceList } from "./quantities.ts";
import { validateNodeSelector } from "./selectors.ts";
import { subdomainProblems } from "./text-rules.ts";
import { textAt, validateSource, validateSources, type Sources } from "./volume-sources.ts";

type VolumeSpec = Loose<PersistentVolumeSpec>;

const ACCESS_MODES: readonly string[] = [
  "ReadOnlyMany",
  "ReadWriteMany",
  "ReadWriteOnce",
  "ReadWriteOncePod",
];
export const VOLUME_MODES: readonly string[] = ["Block", "Filesystem"];
const RECLAIM_POLICIES: readonly string[] = ["Delete", "Recycle", "Retain"];

/** Every source a PersistentVolume can have. */
export const SOURCE_ORDER = [
  "hostPath",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "glusterfs",
  "flocker",
  "nfs",
  "rbd",
  "quobyte",
  "cephfs",
  "iscsi",
  "cinder",
  "fc",
  "flexVolume",
  "azureFile",
  "vsphereVolume",
  "azureDisk",
  "photonPersistentDisk",
  "portworxVolume",
  "scaleIO",
  "local",
  "storageos",
  "csi",
] as const satisfies readonly (keyof VolumeSpec)[];

export function validateVolumeSpec(field: string, spec: VolumeSpec): Cause[] {
  const { accessModes = [], storageClassName = "", nodeAffinity } = spec;
  return [
    ...(accessModes.length === 0 ? [required(`${field}.accessModes`)] : []),
    ...validateAccessModes(`${field}.accessModes`, accessModes),
    ...validateCapacity(`${field}.capacity`, spec.capacity),
    ...oneOf(`${field}.persistentVolumeReclaimPolicy`, spec.persistentVolumeReclaimPolicy, RECLAIM_POLICIES),
    ...validateAffinity(`${field}.nodeAffinity`, nodeAffinity),
    ...validateSources(field, spec, SOURCE_ORDER, validateVolumeSource),
    ...(spec.local !== undefined && nodeAffinity === undefined
      ? [required(`${field}.nodeAffinity`, "Local volume requires node affinity")]
      : []),
    ...validateRecycling(field, spec),
    ...(storageClassName === ""
      ? []
      : invalidFor(`${field}.storageClassName`, storageClassName, subdomainProblems(storageClassName))),
    ...oneOf(`${field}.volumeMode`, spec.volumeMode, VOLUME_MODES),
    ...validateAttributesClass(field, spec),
  ];
}

/** The few fields that mean something where a volume is described within a VolumeAttachment. */
export function validateInlineVolumeSpec(field: string, spec: VolumeSpec): Cause[] {
  const where = "may not be specified in the context of inline volumes";
  const given = ["claimRef", "capacity", "nodeAffinity"] as const;
  const { accessModes = [], storageClassName = "" } = spec;
  const { persistentVolumeReclaimPolicy: policy = "Retain", volumeMode = "Filesystem" } = spec;
  return [
    ...given
      .filter((member) => spec[member] !== undefined)
      .map((one) => forbiddenField(`${field}.${one}`, where)),
    ...(policy === "Retain"
      ? []
      : [
          forbiddenField(
            `${field}.persistentVolumeReclaimPolicy`,
            "may only be Retain in the context of inline volumes",
          ),
        ]),
    ...(volumeMode === "Filesystem"
      ? []
      : [
          forbiddenField(
            `${field}.volumeMode`,
            "may not specify volumeMode other than Filesystem in the context of inline volumes",
          ),
        ]),
    ...(storageClassName === "" ? [] : [forbiddenField(`${field}.storageClassName`, where)]),
    ...(spec.csi === undefined
      ? [required(`${field}.csi`, "has to be specified in the context of inline volumes")]
      : []),
    ...(accessModes.length === 0 ? [required(`${field}.accessModes`)] : []),
    ...validateAccessModes(`${field}.accessModes`, accessModes),
    ...validateSources(field, spec, SOURCE_ORDER, validateVolumeSource),
  ];
}

export function validateAccessModes(field: string, modes: readonly string[]): Cause[] {
  const exclusive = modes.includes("ReadWriteOncePod") && modes.some((mode) => mode !== "ReadWriteOncePod");
  return [
    ...modes.flatMap((mode) => oneOf(field, mode, ACCESS_MODES)),
    ...(exclusive ? [forbiddenField(field, "may not use ReadWriteOncePod with other access modes")] : []),
  ];
}

function validateCapacity(field: string, capacity: ResourceList = {}): Cause[] {
  const names = Object.keys(capacity);
  const isStorage = names.length === 1 && names[0] === "storage";
  return [
    ...(names.length === 0 ? [required(field)] : []),
    ...(isStorage ? [] : [notSupported(field, capacity, ["storage"])]),
    ...Object.entries(capacity).flatMap(([name, amount = "0"]) =>
      positiveAmount(`${field}[${name}]`, amount),
    ),
  ];
}

function validateAffinity(field: string, affinity: Loose<VolumeNodeAffinity> | undefined): Cause[] {
  if (affinity === undefined) return [];
  if (affinity.required !== undefined) return validateNodeSelector(`${field}.required`, affinity.required);
  return [required(`${field}.required`, "must specify required node constraints")];
}

function validateVolumeSource(field: string, name: string, source: Sources): Cause[] {
  const causes = validateSource(field, name, source);
  return name === "csi" ? [...causes, ...validateCsiSource(field, source)] : causes;
}

const SECRET_REFS = [
  "controllerPublishSecretRef",
  "controllerExpandSecretRef",
  "nodeStageSecretRef",
  "nodePublishSecretRef",
  "nodeExpandSecretRef",
];

function validateCsiSource(field: string, source: Sources): Cause[] {
  const handle = textAt(source, "volumeHandle") ?? "";
  return [
    ...(handle === "" ? [required(`${field}.volumeHandle`)] : []),
    ...SECRET_REFS.flatMap((ref) => {
      const secret = source[ref];
      if (!isJsonObject(secret)) return [];
      return ["name", "namespace"]
        .filter((member) => (textAt(secret, member) ?? "") === "")
        .map((member) => required(`${field}.${ref}.${member}`));
    }),
  ];
}

/** Recycling empties a directory, and this one is the whole machine. */
function validateRecycling(field: string, spec: VolumeSpec): Cause[] {
  const isRoot = spec.hostPath?.path !== undefined && /^\/[/.]*$/.test(spec.hostPath.path);
  if (!isRoot || spec.persistentVolumeReclaimPolicy !== "Recycle") return [];
  return [
    forbiddenField(
      `${field}.persistentVolumeReclaimPolicy`,
      "may not be 'recycle' for a hostPath mount of '/'",
    ),
  ];
}

function validateAttributesClass(
  field: string,
  { volumeAttributesClassName: name, csi }: VolumeSpec,
): Cause[] {
  if (name === undefined) return [];
  return [
    ...(name === "" ? [required(`${field}.volumeAttributesClassName`, "an empty string is disallowed")] : []),
    ...(name === "" ? [] : invalidFor(`${field}.volumeAttributesClassName`, name, subdomainProblems(name))),
    ...(csi === undefined
      ? [required(`${field}.csi`, "has to be specified when using volumeAttributesClassName")]
      : []),
  ];
}
