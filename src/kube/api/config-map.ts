import type { ConfigMap as ConfigMapV1 } from "kubernetes-types/core/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type ConfigMap = ConfigMapV1 & KubeObject;

export const configMaps: Resource<ConfigMap> = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  namespaced: true,
};
