import type { Pod as PodV1 } from "kubernetes-types/core/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type Pod = PodV1 & KubeObject;

export const pods: Resource<Pod> = { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };
