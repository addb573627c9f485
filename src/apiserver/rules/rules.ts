import { resourceName } from "../../kube/object.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { distinct } from "./causes.ts";
import { configMapRules } from "./config-map.ts";
import { csiDriverRules } from "./csi-driver.ts";
import { csiNodeRules } from "./csi-node.ts";
import { csiStorageCapacityRules } from "./csi-storage-capacity.ts";
import { coreEventRules, newEventRules } from "./event.ts";
import type { KindRules, RuleParts } from "./kind-rules.ts";
import { cronJobRules, jobRules } from "./jobs.ts";
import { leaseRules } from "./lease.ts";
import { without } from "./loose.ts";
import { validateMetadata, validateMetadataUpdate } from "./metadata.ts";
import { namespaceRules } from "./namespace.ts";
import { endpointSliceRules, endpointsRules, ingressClassRules, networkPolicyRules } from "./networking.ts";
import { nodeRules } from "./node.ts";
import { persistentVolumeClaimRules } from "./persistent-volume-claim.ts";
import { persistentVolumeRules } from "./persistent-volume.ts";
import { podRules } from "./pod.ts";
import { limitRangeRules, resourceQuotaRules } from "./quota.ts";
import { clusterRoleRules, roleBindingRules, roleRules } from "./rbac.ts";
import { secretRules } from "./secret.ts";
import {
  podDisruptionBudgetRules,
  podTemplateRules,
  priorityClassRules,
  runtimeClassRules,
} from "./scheduling.ts";
import { serviceRules } from "./service.ts";
import { statefulSetRules } from "./stateful-set.ts";
import { volumeSnapshotClassRules, volumeSnapshotContentRules, volumeSnapshotRules } from "./snapshots.ts";
import { storageClassRules } from "./storage-class.ts";
import { tableRules } from "./table-rules.ts";
import { volumeAttachmentRules } from "./volume-attachment.ts";
import { volumeAttributesClassRules } from "./volume-attributes-class.ts";
import { daemonSetRules, deploymentRules, replicaSetRules, replicationControllerRules } from "./workloads.ts";

/** Kinds that are not here are judged by the field table (table-rules.ts). */
const PARTS: Readonly<Record<string, RuleParts<ApiObject>>> = {
  namespaces: namespaceRules,
  nodes: nodeRules,
  pods: podRules,
  persistentvolumes: persistentVolumeRules,
  persistentvolumeclaims: persistentVolumeClaimRules,
  secrets: secretRules,
  configmaps: configMapRules,
  events: coreEventRules,
  "events.events.k8s.io": newEventRules,
  "leases.coordination.k8s.io": leaseRules,
  "storageclasses.storage.k8s.io": storageClassRules,
  "volumeattachments.storage.k8s.io": volumeAttachmentRules,
  "volumeattributesclasses.storage.k8s.io": volumeAttributesClassRules,
  "volumesnapshots.snapshot.storage.k8s.io": volumeSnapshotRules,
  "volumesnapshotcontents.snapshot.storage.k8s.io": volumeSnapshotContentRules,
  "volumesnapshotclasses.snapshot.storage.k8s.io": volumeSnapshotClassRules,
  "csidrivers.storage.k8s.io": csiDriverRules,
  "csinodes.storage.k8s.io": csiNodeRules,
  "csistoragecapacities.storage.k8s.io": csiStorageCapacityRules,
  "roles.rbac.authorization.k8s.io": roleRules,
  "clusterroles.rbac.authorization.k8s.io": clusterRoleRules,
  "rolebindings.rbac.authorization.k8s.io": roleBindingRules,
  "clusterrolebindings.rbac.authorization.k8s.io": roleBindingRules,
  services: serviceRules,
  endpoints: endpointsRules,
  podtemplates: podTemplateRules,
  replicationcontrollers: replicationControllerRules,
  resourcequotas: resourceQuotaRules,
  limitranges: limitRangeRules,
  "deployments.apps": deploymentRules,
  "replicasets.apps": replicaSetRules,
  "daemonsets.apps": daemonSetRules,
  "statefulsets.apps": statefulSetRules,
  "jobs.batch": jobRules,
  "cronjobs.batch": cronJobRules,
  "endpointslices.discovery.k8s.io": endpointSliceRules,
  "networkpolicies.networking.k8s.io": networkPolicyRules,
  "ingressclasses.networking.k8s.io": ingressClassRules,
  "poddisruptionbudgets.policy": podDisruptionBudgetRules,
  "priorityclasses.scheduling.k8s.io": priorityClassRules,
  "runtimeclasses.node.k8s.io": runtimeClassRules,
};

/** One for each kind served. */
const cache = new WeakMap<Kind, KindRules>();

/**
 * The rules of a kind (spec/apiserver.md, sections 6.1, 10.6, 13.1 and 13.3). Objects are in the short
 * form of schema/decode.ts, the stored ones too: types are right, and absent means absent.
 */
export function rulesFor(kind: Kind): KindRules {
  let rules = cache.get(kind);
  if (rules === undefined) {
    rules = createRules(kind, PARTS[resourceName(kind)] ?? tableRules(kind));
    cache.set(kind, rules);
  }
  return rules;
}

function createRules(kind: Kind, parts: RuleParts<ApiObject>): KindRules {
  const hasStatus = kind.status !== "none";
  const dropsStatus = hasStatus && parts.statusOnCreate !== "keep";
  // Recorders named events after anything before there was a rule, and core/v1 never got one.
  const named = resourceName(kind) === "events" ? { ...kind, nameRule: "path-segment" as const } : kind;
  return {
    applyDefaults: (object) => parts.applyDefaults?.(object) ?? object,

    prepareCreate(object, moment) {
      const reset = dropsStatus ? withStatus(object, undefined) : object;
      return parts.prepareCreate?.(reset, moment) ?? reset;
    },
    prepareUpdate(object, old, moment) {
      const restored = hasStatus ? withStatus(object, old["status"]) : object;
      return parts.prepareUpdate?.(restored, old, moment) ?? restored;
    },
    prepareStatusUpdate(object, old, moment) {
      const metadata = kind.status === "restore" ? old.metadata : object.metadata;
      const restored = withStatus({ ...old, metadata }, object["status"]);
      return parts.prepareStatusUpdate?.(restored, old, moment) ?? restored;
    },

    validateCreate: (object) =>
      distinct([
        ...validateMetadata(named, object.metadata),
        ...(parts.validate?.(object) ?? []),
        ...(parts.validateNew?.(object) ?? []),
      ]),
    validateUpdate: (object, old) =>
      distinct([
        ...validateMetadataUpdate(object.metadata, old.metadata),
        ...(parts.validate?.(object) ?? []),
        ...(parts.validateChange?.(object, old) ?? []),
      ]),
    validateStatusUpdate: (object, old) =>
      distinct([
        ...validateMetadataUpdate(object.metadata, old.metadata),
        ...(parts.validateStatus?.(object, old) ?? []),
      ]),
  };
}

function withStatus(object: ApiObject, status: unknown): ApiObject {
  const rest = without(object, "status") as ApiObject;
  return status === undefined ? rest : { ...rest, status };
}
