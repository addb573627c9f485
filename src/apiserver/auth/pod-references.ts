import { fieldAt } from "../objects.ts";
import { listAt, textAt } from "./stored.ts";

/** Objects of a pod's own namespace that its node needs to run it. */
export type ReferenceKind = "secrets" | "configmaps" | "persistentvolumeclaims" | "serviceaccounts";

export interface Reference {
  readonly kind: ReferenceKind;
  readonly name: string;
}

/** All that a pod names: volumes, environment, pull secrets and its account. Names may stand several times. */
export function referencesOf(pod: unknown): Reference[] {
  const references: Reference[] = [];
  const add = (kind: ReferenceKind, name: string) => {
    if (name !== "") references.push({ kind, name });
  };
  add("serviceaccounts", textAt(pod, "spec", "serviceAccountName") || "default");
  for (const secret of listAt(pod, "spec", "imagePullSecrets")) add("secrets", textAt(secret, "name"));
  for (const containers of ["initContainers", "containers", "ephemeralContainers"]) {
    for (const container of listAt(pod, "spec", containers)) addEnvironment(container, add);
  }
  for (const volume of listAt(pod, "spec", "volumes")) {
    addVolume(volume, add);
    // The claim of an ephemeral volume is named after both.
    const owner = textAt(pod, "metadata", "name");
    const isEphemeral = fieldAt(volume, "ephemeral") !== undefined;
    if (isEphemeral) add("persistentvolumeclaims", `${owner}-${textAt(volume, "name")}`);
  }
  return references;
}

type Add = (kind: ReferenceKind, name: string) => void;

function addEnvironment(container: unknown, add: Add): void {
  for (const source of listAt(container, "envFrom")) {
    add("secrets", textAt(source, "secretRef", "name"));
    add("configmaps", textAt(source, "configMapRef", "name"));
  }
  for (const variable of listAt(container, "env")) {
    add("secrets", textAt(variable, "valueFrom", "secretKeyRef", "name"));
    add("configmaps", textAt(variable, "valueFrom", "configMapKeyRef", "name"));
  }
}

function addVolume(volume: unknown, add: Add): void {
  add("secrets", textAt(volume, "secret", "secretName"));
  add("configmaps", textAt(volume, "configMap", "name"));
  add("persistentvolumeclaims", textAt(volume, "persistentVolumeClaim", "claimName"));
  add("secrets", textAt(volume, "csi", "nodePublishSecretRef", "name"));
  add("secrets", textAt(volume, "azureFile", "secretName"));
  for (const source of SECRET_REF_SOURCES) add("secrets", textAt(volume, source, "secretRef", "name"));
  for (const source of listAt(volume, "projected", "sources")) {
    add("secrets", textAt(source, "secret", "name"));
    add("configmaps", textAt(source, "configMap", "name"));
  }
}

/** In-tree sources that name their secret in `secretRef`, in pods as in persistent volumes. */
const SECRET_REF_SOURCES = ["cephfs", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"] as const;

/** Secrets a node needs for a volume. Those of the controller are none of its business. */
export function volumeSecretsOf(volume: unknown): { readonly namespace: string; readonly name: string }[] {
  const claimNamespace = textAt(volume, "spec", "claimRef", "namespace");
  const references = [
    ...["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"].map((field) =>
      fieldAt(volume, "spec", "csi", field),
    ),
    ...SECRET_REF_SOURCES.map((source) => fieldAt(volume, "spec", source, "secretRef")),
  ].map((reference) => ({
    namespace: textAt(reference, "namespace") || claimNamespace,
    name: textAt(reference, "name"),
  }));
  const azureFile = {
    namespace: textAt(volume, "spec", "azureFile", "secretNamespace") || claimNamespace,
    name: textAt(volume, "spec", "azureFile", "secretName"),
  };
  return [...references, azureFile].filter(({ name }) => name !== "");
}
