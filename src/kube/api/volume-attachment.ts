import type { VolumeAttachment as VolumeAttachmentV1 } from "kubernetes-types/storage/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type VolumeAttachment = VolumeAttachmentV1 & KubeObject;

export const volumeAttachments: Resource<VolumeAttachment> = {
  group: "storage.k8s.io",
  version: "v1",
  kind: "VolumeAttachment",
  plural: "volumeattachments",
  namespaced: false,
};
