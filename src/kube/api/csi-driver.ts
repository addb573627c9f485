import type { CSIDriver as CSIDriverV1 } from "kubernetes-types/storage/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type CSIDriver = CSIDriverV1 & KubeObject;

export const csiDrivers: Resource<CSIDriver> = {
  group: "storage.k8s.io",
  version: "v1",
  kind: "CSIDriver",
  plural: "csidrivers",
  namespaced: false,
};
