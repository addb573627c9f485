import { kind, type Kind } from "./kind.ts";

/**
 * Kinds that say what others may do and in which order. Admission policies are evaluated (policies/); webhooks and flow
 * schemas are kept for the programs that list them: this server calls no webhook and has one queue for all.
 */
const ADMISSION = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  namespaced: false,
  categories: ["api-extensions"],
  unconditionalUpdate: false,
  generation: "from-1",
} as const;
const FLOW = {
  group: "flowcontrol.apiserver.k8s.io",
  version: "v1",
  namespaced: false,
  status: "restore",
  generation: "from-1",
} as const;
const RESOURCE = { group: "resource.k8s.io", version: "v1", deleteAnswer: "object" } as const;

export const POLICY_KINDS: readonly Kind[] = [
  kind({ ...ADMISSION, kind: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolicies" }),
  kind({ ...ADMISSION, kind: "MutatingAdmissionPolicyBinding", plural: "mutatingadmissionpolicybindings" }),
  kind({ ...ADMISSION, kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations" }),
  kind({
    ...ADMISSION,
    kind: "ValidatingAdmissionPolicy",
    plural: "validatingadmissionpolicies",
    status: "restore",
  }),
  kind({
    ...ADMISSION,
    kind: "ValidatingAdmissionPolicyBinding",
    plural: "validatingadmissionpolicybindings",
  }),
  kind({ ...ADMISSION, kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations" }),
  kind({
    group: "certificates.k8s.io",
    version: "v1",
    namespaced: false,
    kind: "CertificateSigningRequest",
    plural: "certificatesigningrequests",
    shortNames: ["csr"],
    status: "accept",
  }),
  kind({ ...FLOW, kind: "FlowSchema", plural: "flowschemas" }),
  kind({ ...FLOW, kind: "PriorityLevelConfiguration", plural: "prioritylevelconfigurations" }),
  kind({
    group: "node.k8s.io",
    version: "v1",
    namespaced: false,
    kind: "RuntimeClass",
    plural: "runtimeclasses",
    createOnUpdate: true,
    unconditionalUpdate: false,
  }),
  kind({
    group: "policy",
    version: "v1",
    namespaced: true,
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    shortNames: ["pdb"],
    status: "accept",
    unconditionalUpdate: false,
    generation: "from-1",
  }),
  kind({
    ...RESOURCE,
    namespaced: false,
    kind: "DeviceClass",
    plural: "deviceclasses",
    generation: "from-1",
  }),
  kind({
    ...RESOURCE,
    namespaced: true,
    kind: "ResourceClaim",
    plural: "resourceclaims",
    status: "restore",
  }),
  kind({ ...RESOURCE, namespaced: true, kind: "ResourceClaimTemplate", plural: "resourceclaimtemplates" }),
  kind({
    ...RESOURCE,
    namespaced: false,
    kind: "ResourceSlice",
    plural: "resourceslices",
    generation: "from-1",
  }),
  kind({
    group: "scheduling.k8s.io",
    version: "v1",
    namespaced: false,
    kind: "PriorityClass",
    plural: "priorityclasses",
    shortNames: ["pc"],
    generation: "from-1",
  }),
];
