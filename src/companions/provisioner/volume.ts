import type { CSIPersistentVolumeSource, SecretReference } from "kubernetes-types/core/v1.js";
import type { Volume } from "../../csi/gen/csi_pb.ts";
import type { PersistentVolumeClaim } from "../../kube/api/persistent-volume-claim.ts";
import type { PersistentVolume } from "../../kube/api/persistent-volume.ts";
import type { StorageClass } from "../kinds.ts";
import {
  DELETION_SECRET_NAME,
  DELETION_SECRET_NAMESPACE,
  PROVISIONED_BY,
  PROVISIONER_FINALIZER,
} from "../names.ts";
import type { SecretRef } from "../secrets.ts";
import { toQuantity } from "../sizes.ts";
import type { ClassParameters } from "./parameters.ts";
import { volumeNameOf } from "./plan.ts";
import { toNodeSelectorTerms } from "./topology.ts";

export interface MadeVolume {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly parameters: ClassParameters;
  readonly driver: string;
  readonly fsType: string;
  readonly volume: Volume;
  /** What was asked for; a driver that does not say how large the volume is made it so. */
  readonly sizeBytes: bigint;
  /** Nobody wants it any more: it is recorded only so that it is deleted, whatever the class says. */
  readonly unwanted: boolean;
}

/** What the driver made, as the cluster knows it. */
export function toPersistentVolume(made: MadeVolume): PersistentVolume {
  const { claim, storageClass, volume, driver, parameters, unwanted } = made;
  const { provisioner: deletion } = parameters.secrets;
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const terms = toNodeSelectorTerms(volume.accessibleTopology);
  return {
    metadata: {
      name: volumeNameOf(claim),
      annotations: {
        [PROVISIONED_BY]: driver,
        [DELETION_SECRET_NAME]: deletion?.name ?? "",
        [DELETION_SECRET_NAMESPACE]: deletion?.namespace ?? "",
      },
      finalizers: [PROVISIONER_FINALIZER],
    },
    spec: {
      accessModes: [...(claim.spec?.accessModes ?? [])],
      capacity: { storage: toQuantity(volume.capacityBytes || made.sizeBytes) },
      claimRef: {
        apiVersion: "v1",
        kind: "PersistentVolumeClaim",
        name: name ?? "",
        namespace: namespace ?? "",
        uid: uid ?? "",
        resourceVersion: resourceVersion ?? "",
      },
      csi: toSource(made),
      persistentVolumeReclaimPolicy: unwanted ? "Delete" : (storageClass.reclaimPolicy ?? "Delete"),
      storageClassName: storageClass.metadata.name ?? "",
      volumeMode: claim.spec?.volumeMode ?? "Filesystem",
      ...(storageClass.mountOptions && { mountOptions: storageClass.mountOptions }),
      ...(terms.length > 0 && { nodeAffinity: { required: { nodeSelectorTerms: terms } } }),
    },
  };
}

function toSource({ claim, driver, fsType, volume, parameters }: MadeVolume): CSIPersistentVolumeSource {
  const { secrets } = parameters;
  const block = claim.spec?.volumeMode === "Block";
  return {
    driver,
    volumeHandle: volume.volumeId,
    ...(Object.keys(volume.volumeContext).length > 0 && { volumeAttributes: { ...volume.volumeContext } }),
    ...(!block && fsType !== "" && { fsType }),
    ...reference("controllerPublishSecretRef", secrets.controllerPublish),
    ...reference("controllerExpandSecretRef", secrets.controllerExpand),
    ...reference("nodeStageSecretRef", secrets.nodeStage),
    ...reference("nodePublishSecretRef", secrets.nodePublish),
    ...reference("nodeExpandSecretRef", secrets.nodeExpand),
  };
}

function reference(field: string, ref: SecretRef | undefined): Record<string, SecretReference> {
  return ref ? { [field]: { ...ref } } : {};
}
