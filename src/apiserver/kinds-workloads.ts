import { kind, type Kind } from "./kind.ts";

/**
 * The kinds that run pods and that find them. This server keeps, defaults and validates them; what acts on them is
 * kube-controller-manager, or nothing.
 */
const CORE = { group: "", version: "v1", namespaced: true };
const APPS = { group: "apps", version: "v1", namespaced: true };
const BATCH = { group: "batch", version: "v1", namespaced: true };
const NETWORKING = { group: "networking.k8s.io", version: "v1" };

/** Has replicas, a status and a generation, and belongs to `kubectl get all`. */
const WORKLOAD = { categories: ["all"], status: "accept", generation: "from-1" } as const;

export const services = kind({
  ...CORE,
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  categories: ["all"],
  status: "accept",
  deleteAnswer: "object",
  createOnUpdate: true,
  nameRule: "label-1035",
});

export const WORKLOAD_KINDS: readonly Kind[] = [
  kind({ ...CORE, kind: "Endpoints", plural: "endpoints", shortNames: ["ep"], createOnUpdate: true }),
  kind({
    ...CORE,
    kind: "LimitRange",
    plural: "limitranges",
    shortNames: ["limits"],
    createOnUpdate: true,
  }),
  kind({
    ...CORE,
    kind: "PodTemplate",
    plural: "podtemplates",
    deleteAnswer: "object",
    generation: "from-1",
  }),
  kind({
    ...CORE,
    ...WORKLOAD,
    kind: "ReplicationController",
    plural: "replicationcontrollers",
    shortNames: ["rc"],
  }),
  kind({
    ...CORE,
    kind: "ResourceQuota",
    plural: "resourcequotas",
    shortNames: ["quota"],
    status: "accept",
    deleteAnswer: "object",
  }),
  services,
  kind({ ...APPS, kind: "ControllerRevision", plural: "controllerrevisions" }),
  kind({ ...APPS, ...WORKLOAD, kind: "DaemonSet", plural: "daemonsets", shortNames: ["ds"] }),
  kind({ ...APPS, ...WORKLOAD, kind: "Deployment", plural: "deployments", shortNames: ["deploy"] }),
  kind({ ...APPS, ...WORKLOAD, kind: "ReplicaSet", plural: "replicasets", shortNames: ["rs"] }),
  kind({ ...APPS, ...WORKLOAD, kind: "StatefulSet", plural: "statefulsets", shortNames: ["sts"] }),
  kind({ ...BATCH, ...WORKLOAD, kind: "CronJob", plural: "cronjobs", shortNames: ["cj"] }),
  kind({ ...BATCH, ...WORKLOAD, kind: "Job", plural: "jobs" }),
  kind({
    ...WORKLOAD,
    group: "autoscaling",
    version: "v2",
    namespaced: true,
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    shortNames: ["hpa"],
  }),
  kind({
    group: "discovery.k8s.io",
    version: "v1",
    namespaced: true,
    kind: "EndpointSlice",
    plural: "endpointslices",
    generation: "from-1",
  }),
  kind({
    ...NETWORKING,
    namespaced: true,
    kind: "Ingress",
    plural: "ingresses",
    shortNames: ["ing"],
    status: "accept",
    generation: "from-1",
  }),
  kind({
    ...NETWORKING,
    namespaced: false,
    kind: "IngressClass",
    plural: "ingressclasses",
    generation: "from-1",
  }),
  kind({ ...NETWORKING, namespaced: false, kind: "IPAddress", plural: "ipaddresses", shortNames: ["ip"] }),
  kind({
    ...NETWORKING,
    namespaced: true,
    kind: "NetworkPolicy",
    plural: "networkpolicies",
    shortNames: ["netpol"],
    generation: "from-1",
  }),
  kind({
    ...NETWORKING,
    namespaced: false,
    kind: "ServiceCIDR",
    plural: "servicecidrs",
    status: "accept",
  }),
];
