import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import { StorageError } from "../errors.ts";
import type { StorageClass } from "../kinds.ts";
import { secretRefOf, type SecretRef } from "../secrets.ts";
import { volumeNameOf } from "./plan.ts";

/** What a class says, sorted into what is for us and what is for the driver. */
export interface ClassParameters {
  readonly driver: Record<string, string>;
  /** Undefined where the class does not say. */
  readonly fsType: string | undefined;
  readonly secrets: Readonly<Record<SecretPurpose, SecretRef | undefined>>;
}

const RESERVED = "csi.storage.k8s.io/";
const FS_TYPES = [`${RESERVED}fstype`, "fstype"];

const SECRET_PREFIXES = {
  provisioner: `${RESERVED}provisioner-secret`,
  controllerPublish: `${RESERVED}controller-publish-secret`,
  controllerExpand: `${RESERVED}controller-expand-secret`,
  nodeStage: `${RESERVED}node-stage-secret`,
  nodePublish: `${RESERVED}node-publish-secret`,
  nodeExpand: `${RESERVED}node-expand-secret`,
} as const;

export type SecretPurpose = keyof typeof SECRET_PREFIXES;

export function readParameters(
  { metadata, parameters = {} }: StorageClass,
  claim: PersistentVolumeClaim,
): ClassParameters {
  const secretKeys = Object.values(SECRET_PREFIXES).flatMap((prefix) => [
    `${prefix}-name`,
    `${prefix}-namespace`,
  ]);
  const known = new Set([...FS_TYPES, ...secretKeys]);
  const others = Object.entries(parameters).filter(([key]) => !known.has(key));
  const unknown = others.find(([key]) => key.startsWith(RESERVED));
  if (unknown) {
    const message = `parameter ${unknown[0]} of class "${metadata.name}" begins with ${RESERVED} but is none of those known`;
    throw new StorageError("BadClass", message);
  }
  return {
    driver: Object.fromEntries(others),
    fsType: parameters[`${RESERVED}fstype`] ?? parameters["fstype"],
    secrets: readSecrets(parameters, claim),
  };
}

function readSecrets(
  parameters: Readonly<Record<string, string>>,
  claim: PersistentVolumeClaim,
): ClassParameters["secrets"] {
  const { name, namespace, annotations = {} } = claim.metadata;
  const values = {
    "pv.name": volumeNameOf(claim),
    "pvc.name": name,
    "pvc.namespace": namespace,
    ...Object.fromEntries(
      Object.entries(annotations).map(([key, value]) => [`pvc.annotations['${key}']`, value]),
    ),
  };
  const read = (purpose: SecretPurpose) => secretRefOf(parameters, SECRET_PREFIXES[purpose], values);
  return {
    provisioner: read("provisioner"),
    controllerPublish: read("controllerPublish"),
    controllerExpand: read("controllerExpand"),
    nodeStage: read("nodeStage"),
    nodePublish: read("nodePublish"),
    nodeExpand: read("nodeExpand"),
  };
}
