import type { Volume, VolumeProjection } from "kubernetes-types/core/v1.js";
import { isJsonObject } from "../../kube/patch/json.ts";
import {
  duplicate,
  forbiddenField,
  invalidFor,
  invalidValue,
  required,
  requiredText,
  type Cause,
} from "./causes.ts";
import { tokenLifetimeCauses } from "./csi-driver.ts";
import type { Loose } from "./loose.ts";
import { validateClaimSpec } from "./persistent-volume-claim.ts";
import { compareAmounts } from "./quantities.ts";
import { labelProblems } from "./text-rules.ts";
import { textAt, validateSource, validateSources, type Sources } from "./volume-sources.ts";

type PodVolume = Loose<Volume>;

const SOURCE_ORDER = [
  "emptyDir",
  "hostPath",
  "gitRepo",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "secret",
  "nfs",
  "iscsi",
  "glusterfs",
  "flocker",
  "persistentVolumeClaim",
  "rbd",
  "cinder",
  "cephfs",
  "quobyte",
  "downwardAPI",
  "fc",
  "flexVolume",
  "configMap",
  "azureFile",
  "vsphereVolume",
  "photonPersistentDisk",
  "portworxVolume",
  "azureDisk",
  "storageos",
  "projected",
  "scaleIO",
  "csi",
  "ephemeral",
  "image",
];

/** Permission bits go up to 0777. */
const FILE_MODE_MAX = 0o777;

export function validateVolumes(field: string, volumes: readonly PodVolume[] = []): Cause[] {
  const names = volumes.map(({ name }) => name);
  return volumes.flatMap((volume, index) => {
    const { name = "" } = volume;
    const path = `${field}[${index}]`;
    return [
      ...validateSources(path, volume, SOURCE_ORDER, validatePodSource),
      ...(name === "" ? [required(`${path}.name`)] : invalidFor(`${path}.name`, name, labelProblems(name))),
      ...(name !== "" && names.indexOf(name) < index ? [duplicate(`${path}.name`, name)] : []),
    ];
  });
}

function validatePodSource(field: string, name: string, source: Sources): Cause[] {
  return [
    ...validateSource(field, name, source),
    ...validateMode(`${field}.defaultMode`, source["defaultMode"]),
    ...validateItems(`${field}.items`, source["items"], { isDownward: name === "downwardAPI" }),
    ...(name === "emptyDir" ? validateSizeLimit(field, textAt(source, "sizeLimit")) : []),
    ...(name === "projected" ? validateProjections(field, source) : []),
    ...(name === "ephemeral" ? validateEphemeral(field, source) : []),
  ];
}

function validateMode(field: string, mode: unknown): Cause[] {
  if (typeof mode !== "number" || (mode >= 0 && mode <= FILE_MODE_MAX)) return [];
  return [invalidValue(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")];
}

function validateSizeLimit(field: string, sizeLimit: string | undefined): Cause[] {
  if (compareAmounts(sizeLimit, "0") >= 0) return [];
  return [forbiddenField(`${field}.sizeLimit`, "SizeLimit field must be a valid resource quantity")];
}

/** Keys of a Secret or ConfigMap, or fields of the pod, that become files. */
function validateItems(field: string, items: unknown, { isDownward }: { isDownward: boolean }): Cause[] {
  if (!Array.isArray(items)) return [];
  return items
    .filter(isJsonObject)
    .flatMap((item, index) => [
      ...(isDownward ? [] : requiredText(`${field}[${index}].key`, textAt(item, "key"))),
      ...validateFilePath(`${field}[${index}].path`, textAt(item, "path")),
      ...validateMode(`${field}[${index}].mode`, item["mode"]),
    ]);
}

/** A file below the volume: never above it. */
export function validateFilePath(field: string, path = ""): Cause[] {
  if (path === "") return [required(field)];
  return validateDescending(field, path);
}

export function validateDescending(field: string, path: string): Cause[] {
  if (path.startsWith("/")) return [invalidValue(field, path, "must be a relative path")];
  return path.split("/").includes("..") ? [invalidValue(field, path, "must not contain '..'")] : [];
}

function validateProjections(field: string, source: Sources): Cause[] {
  const sources = source["sources"] as readonly Loose<VolumeProjection>[] | undefined;
  return (sources ?? []).flatMap((projection, index) => {
    const path = `${field}.sources[${index}]`;
    const { serviceAccountToken: token, secret, configMap, downwardAPI } = projection;
    const [, ...tooMany] = Object.keys(projection);
    return [
      ...tooMany.map((name) =>
        forbiddenField(`${path}.${name}`, "may not specify more than 1 volume type per source"),
      ),
      ...(secret === undefined ? [] : requiredText(`${path}.secret.name`, secret.name)),
      ...(configMap === undefined ? [] : requiredText(`${path}.configMap.name`, configMap.name)),
      ...validateItems(`${path}.secret.items`, secret?.items, { isDownward: false }),
      ...validateItems(`${path}.configMap.items`, configMap?.items, { isDownward: false }),
      ...validateItems(`${path}.downwardAPI.items`, downwardAPI?.items, { isDownward: true }),
      ...tokenLifetimeCauses(`${path}.serviceAccountToken.expirationSeconds`, token?.expirationSeconds),
      ...(token === undefined ? [] : requiredText(`${path}.serviceAccountToken.path`, token.path)),
    ];
  });
}

function validateEphemeral(field: string, source: Sources): Cause[] {
  const { volumeClaimTemplate: template } = source as NonNullable<PodVolume["ephemeral"]>;
  const path = `${field}.volumeClaimTemplate`;
  return template === undefined ? [required(path)] : validateClaimSpec(`${path}.spec`, template.spec ?? {});
}
