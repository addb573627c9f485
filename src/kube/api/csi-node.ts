import type { CSINode as CSINodeV1 } from "kubernetes-types/storage/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type CSINode = CSINodeV1 & KubeObject;

export const csiNodes: Resource<CSINode> = {
  group: "storage.k8s.io",
  version: "v1",
  kind: "CSINode",
  plural: "csinodes",
  namespaced: false,
};
