import type { Lease as LeaseV1 } from "kubernetes-types/coordination/v1.js";
import type { KubeObject, Resource } from "../object.ts";

export type Lease = LeaseV1 & KubeObject;

export const leases: Resource<Lease> = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  namespaced: true,
};
