import type { AzureFilePersistentVolumeSource } from "kubernetes-types/core/v1.js";
import { AZURE_FILE_RESOURCE_GROUP } from "../../kube/api/persistent-volume.ts";
import { text } from "../untrusted.ts";
import { csiFields, handleField, READ_WRITE_MANY, type InTreePlugin, type Origin } from "./in-tree.ts";

/** One share may be mounted by many volumes, so its handle also holds whose it is: five parts, joined by `#`. */
export const azureFile: InTreePlugin<"azureFile"> = {
  source: "azureFile",
  driver: "file.csi.azure.com",
  handle(source, origin) {
    const share = handleField(source, "shareName");
    const secret = handleField(source, "secretName");
    const namespace = secretNamespaceOf(source, origin);
    if (typeof share !== "string") return share;
    if (typeof secret !== "string") return secret;
    if (namespace === "") return { problem: "has neither a secretNamespace nor a claim to take it from" };
    return [resourceGroupOf(origin), accountOf(secret), share, nameOf(origin), namespace].join("#");
  },
  fields(source, origin) {
    const { readOnly, shareName, secretName } = source;
    const namespace = secretNamespaceOf(source, origin);
    return {
      ...csiFields({ readOnly, volumeAttributes: { sharename: shareName } }),
      nodeStageSecretRef: { name: secretName, namespace },
    };
  },
  inlineName: (_, handle) => handle,
  inlineAccessModes: () => [READ_WRITE_MANY],
};

function secretNamespaceOf({ secretNamespace }: AzureFilePersistentVolumeSource, origin: Origin): string {
  if (origin.kind === "inline") return origin.podNamespace || "default";
  return text(secretNamespace ?? origin.volume.spec?.claimRef?.namespace);
}

function resourceGroupOf(origin: Origin): string {
  return origin.kind === "inline"
    ? ""
    : text(origin.volume.metadata.annotations?.[AZURE_FILE_RESOURCE_GROUP]);
}

function nameOf(origin: Origin): string {
  return origin.kind === "inline" ? origin.name : text(origin.volume.metadata.name);
}

const SECRET_PREFIX = "azure-storage-account-";
const SECRET_SUFFIX = "-secret";

/** Provisioned secrets are called after the storage account they open; others have to be called like it. */
function accountOf(secret: string): string {
  const prefix = secret.indexOf(SECRET_PREFIX);
  const start = prefix + SECRET_PREFIX.length;
  const end = secret.lastIndexOf(SECRET_SUFFIX);
  return prefix >= 0 && end > start ? secret.slice(start, end) : secret;
}
