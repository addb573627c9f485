import type { ObjectStore } from "../store/store.ts";
import { exactValue, type AccessAttributes, type ResourceAccess } from "./attributes.ts";
import type { Decision } from "./authorizer.ts";
import { createNodeGraph, type NodeGraph } from "./node-graph.ts";
import { allowsResource, type PolicyRule } from "./rules.ts";
import { nodeNameOf, type UserInfo } from "./user.ts";

/**
 * A node agent may touch only what belongs to its node, so that whoever breaks into one machine does not
 * get the secrets of all the others. Lists and watches of pods need the selector of that node, as in
 * kube-apiserver since 1.32 (AuthorizeNodeWithSelectors). Bodies are looked at by `checkNodeRestriction`.
 *
 * Stricter than the original, which leaves these to an admission plugin: another node's Node and pods are
 * refused here, and a node creates no pods, because there are no static pods.
 */
export function createNodeAuthorizer(store: ObjectStore) {
  const graph = createNodeGraph(store);
  return {
    authorize(user: UserInfo, access: AccessAttributes): Decision {
      const node = nodeNameOf(user);
      if (node === undefined || access.kind === "path") return no("");
      const check = CHECKS[access.group === "" ? access.resource : `${access.resource}.${access.group}`];
      if (check !== undefined) return check(graph, node, access);
      return yesIf(
        NODE_RULES.some((rule) => allowsResource(rule, access)),
        "",
      );
    },
  };
}

const READ = ["get", "list", "watch"];
const CHANGE = ["update", "patch"];
const OWN_OBJECT_VERBS = ["get", "create", "update", "patch", "delete"];

/** What every node may do alike: what is no secret, and what it reports. */
const NODE_RULES: readonly PolicyRule[] = [
  {
    verbs: READ,
    apiGroups: ["storage.k8s.io"],
    resources: ["csidrivers", "storageclasses", "volumeattributesclasses"],
  },
  { verbs: ["create", ...CHANGE], apiGroups: ["", "events.k8s.io"], resources: ["events"] },
  { verbs: ["create"], apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"] },
  {
    verbs: ["create"],
    apiGroups: ["authorization.k8s.io"],
    resources: ["subjectaccessreviews", "localsubjectaccessreviews"],
  },
];

type Check = (graph: NodeGraph, node: string, access: ResourceAccess) => Decision;

const CHECKS: Readonly<Record<string, Check>> = {
  secrets: readReferenced("secrets"),
  configmaps: readReferenced("configmaps"),
  persistentvolumeclaims: checkClaim,
  persistentvolumes: (graph, node, access) =>
    getOnly(node, access, () => graph.isVolumeUsedBy(node, access.name)),
  "volumeattachments.storage.k8s.io": (graph, node, access) =>
    getOnly(node, access, () => graph.nodeOfAttachment(access.name) === node),
  serviceaccounts: checkToken,
  pods: checkPod,
  nodes: checkNode,
  "leases.coordination.k8s.io": checkLease,
  "csinodes.storage.k8s.io": checkCsiNode,
};

/** One object at a time, by its name or a selector that names it. */
function readReferenced(kind: "secrets" | "configmaps"): Check {
  return (graph, node, access) => {
    if (!READ.includes(access.verb)) return no("can only read resources of this type");
    if (access.subresource !== "") return no("cannot read subresource");
    if (access.namespace === "") return no("can only read namespaced object of this type");
    return related(node, access, () => graph.isUsedBy(node, kind, access));
  };
}

function checkClaim(graph: NodeGraph, node: string, access: ResourceAccess): Decision {
  const isUsed = () => graph.isUsedBy(node, "persistentvolumeclaims", access);
  if (access.subresource !== "status") return getOnly(node, access, isUsed);
  // Growing a file system is reported in the claim's status.
  if (!CHANGE.includes(access.verb)) return no("can only get/update/patch this type");
  return related(node, access, isUsed);
}

function getOnly(node: string, access: ResourceAccess, isRelated: () => boolean): Decision {
  if (access.verb !== "get") return no("can only get individual resources of this type");
  if (access.subresource !== "") return no("cannot get subresource");
  return related(node, access, isRelated);
}

function related(node: string, { name }: ResourceAccess, isRelated: () => boolean): Decision {
  if (name === "") return no("No Object name found");
  return yesIf(isRelated(), `no relationship found between node '${node}' and this object`);
}

function checkToken(graph: NodeGraph, node: string, access: ResourceAccess): Decision {
  if (access.verb !== "create" || access.name === "") {
    return no("can only create tokens for individual service accounts");
  }
  if (access.subresource !== "token") return no("can only create token subresource of serviceaccount");
  return related(node, access, () => graph.isUsedBy(node, "serviceaccounts", access));
}

function checkPod(graph: NodeGraph, node: string, access: ResourceAccess): Decision {
  const { verb, subresource, fieldSelector } = access;
  const isRead = subresource === "" && READ.includes(verb);
  if (isRead && exactValue(fieldSelector, "spec.nodeName") === node) return yesIf(true, "");
  if (isRead && access.name === "") return no("can only list/watch pods with spec.nodeName field selector");
  const owner = graph.nodeOfPod(access);
  if (isRead) return related(node, access, () => owner === node);
  const isOwnWork =
    (subresource === "" && verb === "delete") ||
    (subresource === "status" && CHANGE.includes(verb)) ||
    (subresource === "eviction" && verb === "create");
  if (!isOwnWork) return no("");
  // A pod that is gone is for the verb to report: a node that tidies up must hear 404, not 403.
  return related(node, access, () => owner === undefined || owner === node);
}

function checkNode(_graph: NodeGraph, node: string, { verb, subresource, name }: ResourceAccess): Decision {
  if (subresource === "" && READ.includes(verb)) {
    if (name === "") return no(`node '${node}' cannot read all nodes, only its own Node object`);
    return yesIf(name === node, `node '${node}' cannot read '${name}', only its own Node object`);
  }
  if (subresource === "" && verb === "create") return yesIf(true, "");
  if ((subresource !== "" && subresource !== "status") || !CHANGE.includes(verb)) return no("");
  return yesIf(name === node, `node '${node}' is not allowed to modify node '${name}'`);
}

const NODE_LEASES = "kube-node-lease";

function checkLease(_graph: NodeGraph, node: string, { verb, namespace, name }: ResourceAccess): Decision {
  if (!OWN_OBJECT_VERBS.includes(verb))
    return no("can only get, create, update, patch, or delete a node lease");
  if (namespace !== NODE_LEASES) return no(`can only access leases in the "${NODE_LEASES}" system namespace`);
  const isOwn = verb === "create" || name === node;
  return yesIf(isOwn, "can only access node lease with the same name as the requesting node");
}

function checkCsiNode(
  _graph: NodeGraph,
  node: string,
  { verb, subresource, name }: ResourceAccess,
): Decision {
  if (!OWN_OBJECT_VERBS.includes(verb)) return no("can only get, create, update, patch, or delete a CSINode");
  if (subresource !== "") return no("cannot authorize CSINode subresources");
  const isOwn = verb === "create" || name === node;
  return yesIf(isOwn, "can only access CSINode with the same name as the requesting node");
}

function yesIf(allowed: boolean, otherwise: string): Decision {
  return { allowed, reason: allowed ? "" : otherwise };
}

function no(reason: string): Decision {
  return { allowed: false, reason };
}
