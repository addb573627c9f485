import type { Namespace as NamespaceV1 } from "kubernetes-types/core/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type Namespace = NamespaceV1 & KubeObject;

export const namespaces: Resource<Namespace> = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  namespaced: false,
};
