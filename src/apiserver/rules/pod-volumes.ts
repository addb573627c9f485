import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { Volume, VolumeProjection } from "kubernetes-types/core/v1.js";
import {
  duplicate,
  forbiddenField,
  invalidFor,
  invalidValue,
  oneOf,
  required,
  requiredText,
  type Cause,
} from "./causes.ts";
import type { Loose } from "./loose.ts";
import { validateLabels } from "./metadata.ts";
import { validateClaimSpec } from "./persistent-volume-claim.ts";
import { validateDownwardFiles, validateItems, validateMode, validateProjections } from "./projections.ts";
import { compareAmounts } from "./quantities.ts";
import { labelProblems, subdomainProblems } from "./text-rules.ts";
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

interface CheckedVolumes {
  readonly causes: readonly Cause[];
  /** Those that nothing is wrong with: a mount of any other names nothing. */
  readonly good: readonly PodVolume[];
}

/** `podName` is what claims of ephemeral volumes are named after. */
export function checkVolumes(field: string, volumes: readonly PodVolume[], podName: string): CheckedVolumes {
  const causes: Cause[] = [];
  const good: PodVolume[] = [];
  for (const [index, volume] of volumes.entries()) {
    const { name = "" } = volume;
    const path = `${field}[${index}]`;
    const isTaken = name !== "" && good.some((one) => one.name === name);
    const found = [
      ...validateSources(path, volume, SOURCE_ORDER, validatePodSource),
      ...validateClaimName(`${path}.name`, volume, podName),
      ...(name === "" ? [required(`${path}.name`)] : invalidFor(`${path}.name`, name, labelProblems(name))),
      ...(isTaken ? [duplicate(`${path}.name`, name)] : []),
    ];
    if (found.length === 0) good.push(volume);
    causes.push(...found);
  }
  return { causes, good };
}

function validateClaimName(field: string, { name = "", ephemeral }: PodVolume, podName: string): Cause[] {
  if (ephemeral === undefined || name === "" || podName === "") return [];
  const claimName = `${podName}-${name}`;
  return subdomainProblems(claimName).map((problem) =>
    invalidValue(field, name, `PVC name "${claimName}": ${problem}`),
  );
}

function validatePodSource(field: string, name: string, source: Sources): Cause[] {
  const volume = { [name]: source } as PodVolume;
  return [
    ...validateSource(field, name, source),
    ...validateMode(`${field}.defaultMode`, source["defaultMode"] as number | undefined),
    ...validateItems(`${field}.items`, volume.secret?.items ?? volume.configMap?.items),
    ...validateDownwardFiles(field, volume.downwardAPI?.items),
    ...validateSizeLimit(field, volume.emptyDir?.sizeLimit),
    ...validateProjections(field, source["sources"] as readonly Loose<VolumeProjection>[] | undefined),
    ...(volume.ephemeral === undefined ? [] : validateEphemeral(field, volume.ephemeral)),
    ...validateInlineSecret(`${field}.nodePublishSecretRef`, volume.csi?.nodePublishSecretRef),
    ...(name === "image" ? validateImageSource(field, source) : []),
  ];
}

function validateSizeLimit(field: string, sizeLimit: string | undefined): Cause[] {
  if (compareAmounts(sizeLimit, "0") >= 0) return [];
  return [forbiddenField(`${field}.sizeLimit`, "SizeLimit field must be a valid resource quantity")];
}

function validateEphemeral(
  field: string,
  { volumeClaimTemplate: template }: NonNullable<PodVolume["ephemeral"]>,
): Cause[] {
  const path = `${field}.volumeClaimTemplate`;
  if (template === undefined) return [required(path)];
  return [
    ...validateTemplateMetadata(`${path}.metadata`, template.metadata),
    ...validateClaimSpec(`${path}.spec`, template.spec ?? {}),
  ];
}

/** The claim gets its name from the pod and the volume, and all else from the server. */
function validateTemplateMetadata(field: string, metadata: Loose<ObjectMeta> = {}): Cause[] {
  return [
    ...validateLabels(`${field}.labels`, metadata.labels),
    ...Object.keys(metadata)
      .filter((name) => name !== "labels" && name !== "annotations")
      .map((name) => forbiddenField(`${field}.${name}`, "cannot be set")),
  ];
}

function validateInlineSecret(field: string, ref: { readonly name?: string } | undefined): Cause[] {
  if (ref === undefined) return [];
  const { name = "" } = ref;
  return name === ""
    ? [required(`${field}.name`)]
    : invalidFor(`${field}.name`, name, subdomainProblems(name));
}

function validateImageSource(field: string, source: Sources): Cause[] {
  return [
    ...requiredText(`${field}.reference`, textAt(source, "reference")),
    ...oneOf(`${field}.pullPolicy`, textAt(source, "pullPolicy"), ["Always", "IfNotPresent", "Never"]),
  ];
}
