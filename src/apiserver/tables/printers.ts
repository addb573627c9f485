import {
  configMapPrinter,
  defaultPrinter,
  leasePrinter,
  namespacePrinter,
  secretPrinter,
  serviceAccountPrinter,
} from "./core.ts";
import { eventPrinter } from "./events.ts";
import {
  endpointSlicePrinter,
  endpointsPrinter,
  ingressClassPrinter,
  ingressPrinter,
  ipAddressPrinter,
  networkPolicyPrinter,
  serviceCidrPrinter,
  servicePrinter,
} from "./networking.ts";
import { nodePrinter } from "./nodes.ts";
import { podPrinter } from "./pods.ts";
import {
  ageOnlyPrinter,
  certificateSigningRequestPrinter,
  flowSchemaPrinter,
  horizontalPodAutoscalerPrinter,
  mutatingPolicyPrinter,
  podDisruptionBudgetPrinter,
  policyBindingPrinter,
  priorityClassPrinter,
  priorityLevelPrinter,
  resourceClaimPrinter,
  resourceQuotaPrinter,
  resourceSlicePrinter,
  runtimeClassPrinter,
  validatingPolicyPrinter,
  webhookConfigurationPrinter,
} from "./policies.ts";
import type { Printer } from "./printer.ts";
import { roleBindingPrinter } from "./rbac.ts";
import {
  volumeSnapshotClassPrinter,
  volumeSnapshotContentPrinter,
  volumeSnapshotPrinter,
} from "./snapshots.ts";
import {
  csiDriverPrinter,
  csiNodePrinter,
  storageClassPrinter,
  volumeAttachmentPrinter,
  volumeAttributesClassPrinter,
} from "./storage.ts";
import { persistentVolumeClaimPrinter, persistentVolumePrinter } from "./volumes.ts";
import {
  controllerRevisionPrinter,
  cronJobPrinter,
  daemonSetPrinter,
  deploymentPrinter,
  jobPrinter,
  podTemplatePrinter,
  replicaSetPrinter,
  replicationControllerPrinter,
  statefulSetPrinter,
} from "./workloads.ts";

/** How objects of a kind are printed. No two kinds that this server knows share a name and differ in columns. */
export function printerFor(kind: string): Printer {
  return PRINTERS.get(kind) ?? defaultPrinter;
}

const PRINTERS: ReadonlyMap<string, Printer> = new Map([
  ["Namespace", namespacePrinter],
  ["Node", nodePrinter],
  ["Pod", podPrinter],
  ["PersistentVolume", persistentVolumePrinter],
  ["PersistentVolumeClaim", persistentVolumeClaimPrinter],
  ["Secret", secretPrinter],
  ["ConfigMap", configMapPrinter],
  ["ServiceAccount", serviceAccountPrinter],
  ["Event", eventPrinter],
  ["Lease", leasePrinter],
  ["StorageClass", storageClassPrinter],
  ["VolumeAttachment", volumeAttachmentPrinter],
  ["CSINode", csiNodePrinter],
  ["CSIDriver", csiDriverPrinter],
  ["VolumeAttributesClass", volumeAttributesClassPrinter],
  ["RoleBinding", roleBindingPrinter],
  ["ClusterRoleBinding", roleBindingPrinter],
  ["VolumeSnapshot", volumeSnapshotPrinter],
  ["VolumeSnapshotContent", volumeSnapshotContentPrinter],
  ["VolumeSnapshotClass", volumeSnapshotClassPrinter],
  ["Deployment", deploymentPrinter],
  ["ReplicaSet", replicaSetPrinter],
  ["ReplicationController", replicationControllerPrinter],
  ["StatefulSet", statefulSetPrinter],
  ["DaemonSet", daemonSetPrinter],
  ["ControllerRevision", controllerRevisionPrinter],
  ["Job", jobPrinter],
  ["CronJob", cronJobPrinter],
  ["PodTemplate", podTemplatePrinter],
  ["Service", servicePrinter],
  ["Endpoints", endpointsPrinter],
  ["EndpointSlice", endpointSlicePrinter],
  ["Ingress", ingressPrinter],
  ["IngressClass", ingressClassPrinter],
  ["NetworkPolicy", networkPolicyPrinter],
  ["ServiceCIDR", serviceCidrPrinter],
  ["IPAddress", ipAddressPrinter],
  ["ResourceQuota", resourceQuotaPrinter],
  ["PodDisruptionBudget", podDisruptionBudgetPrinter],
  ["PriorityClass", priorityClassPrinter],
  ["RuntimeClass", runtimeClassPrinter],
  ["HorizontalPodAutoscaler", horizontalPodAutoscalerPrinter],
  ["CertificateSigningRequest", certificateSigningRequestPrinter],
  ["MutatingWebhookConfiguration", webhookConfigurationPrinter],
  ["ValidatingWebhookConfiguration", webhookConfigurationPrinter],
  ["ValidatingAdmissionPolicy", validatingPolicyPrinter],
  ["MutatingAdmissionPolicy", mutatingPolicyPrinter],
  ["ValidatingAdmissionPolicyBinding", policyBindingPrinter],
  ["MutatingAdmissionPolicyBinding", policyBindingPrinter],
  ["FlowSchema", flowSchemaPrinter],
  ["PriorityLevelConfiguration", priorityLevelPrinter],
  ["DeviceClass", ageOnlyPrinter],
  ["ResourceClaimTemplate", ageOnlyPrinter],
  ["ResourceClaim", resourceClaimPrinter],
  ["ResourceSlice", resourceSlicePrinter],
]);
