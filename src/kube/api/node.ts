import type { Node as NodeV1 } from "kubernetes-types/core/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type Node = NodeV1 & KubeObject;

export const nodes: Resource<Node> = { group: "", version: "v1", kind: "Node", plural: "nodes", namespaced: false };
