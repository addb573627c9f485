import type { SecretReference } from "kubernetes-types/core/v1.js";
import { PORTWORX_SECRET_NAME, PORTWORX_SECRET_NAMESPACE } from "../../kube/api/persistent-volume.ts";
import {
  csiFields,
  handleField,
  READ_ONLY_MANY,
  READ_WRITE_ONCE,
  type InTreePlugin,
  type Origin,
} from "./in-tree.ts";

export const portworx: InTreePlugin<"portworxVolume"> = {
  source: "portworxVolume",
  driver: "pxd.portworx.com",
  handle: (source) => handleField(source, "volumeID"),
  fields({ fsType }, origin) {
    const secret = secretOf(origin);
    return { ...csiFields({ fsType }), ...(secret && forEveryCall(secret)) };
  },
  inlineAccessModes: ({ readOnly }) => [readOnly === true ? READ_ONLY_MANY : READ_WRITE_ONCE],
};

/** Half a reference is none: both annotations have to be there. */
function secretOf(origin: Origin): SecretReference | undefined {
  if (origin.kind === "inline") return undefined;
  const { annotations } = origin.volume.metadata;
  const name = annotations?.[PORTWORX_SECRET_NAME];
  const namespace = annotations?.[PORTWORX_SECRET_NAMESPACE];
  return typeof name === "string" && typeof namespace === "string" ? { name, namespace } : undefined;
}

/** The in-tree plugin knew one secret; CSI has one a call. */
function forEveryCall(secret: SecretReference) {
  return {
    controllerPublishSecretRef: secret,
    nodeStageSecretRef: secret,
    nodePublishSecretRef: secret,
    controllerExpandSecretRef: secret,
    nodeExpandSecretRef: secret,
  };
}
