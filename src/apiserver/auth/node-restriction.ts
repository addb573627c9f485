import { jsonEqual } from "../../kube/patch/json.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import type { ObjectStore } from "../store/store.ts";
import type { ResourceAccess } from "./attributes.ts";
import { refuse } from "./forbidden.ts";
import { readObject, textAt } from "./stored.ts";
import { nodeNameOf, type UserInfo } from "./user.ts";

/** A write whose body is known: what the authorizer, which sees only the path, could not judge. */
export interface NodeWrite {
  readonly access: ResourceAccess;
  readonly object: ApiObject;
  /** What it replaces. */
  readonly previous?: ApiObject | undefined;
}

/**
 * Keeps node agents to their own objects where the name is in the body, and to what they may change of
 * them: the part of kube-apiserver's NodeRestriction that this server's kinds need. Throws 403; does
 * nothing for anybody who is no node agent.
 */
export function checkNodeRestriction(store: ObjectStore, user: UserInfo, write: NodeWrite): void {
  const node = nodeNameOf(user);
  if (node === undefined) return;
  const why = restrictionOf(store, node, write);
  if (why === undefined) return;
  const { access, object } = write;
  throw refuse({ ...access, name: access.name || (object.metadata.name ?? "") }, why);
}

function restrictionOf(store: ObjectStore, node: string, write: NodeWrite): string | undefined {
  const { access, object } = write;
  const isOwn = object.metadata.name === node;
  switch (`${access.resource}/${access.subresource}`) {
    case "nodes/":
    case "nodes/status":
      return isOwn
        ? nodeChange(node, write)
        : `node ${quote(node)} is not allowed to modify node ${quote(nameOf(object))}`;
    case "leases/":
      return isOwn ? undefined : "can only access node lease with the same name as the requesting node";
    case "csinodes/":
      return isOwn ? undefined : "can only access CSINode with the same name as the requesting node";
    case "pods/status":
      return podChange(node, write);
    case "serviceaccounts/token":
      return unboundToken(store, node, write);
    default:
      return undefined;
  }
}

/** Labels under it are for administrators: schedulers trust them to keep workloads apart. */
const RESTRICTED_LABEL = /(^|\.)node-restriction\.kubernetes\.io\//;

function nodeChange(node: string, { object, previous }: NodeWrite): string | undefined {
  const labels = restrictedLabels(object);
  if (!jsonEqual(labels, restrictedLabels(previous))) {
    const names = Object.keys({ ...labels, ...restrictedLabels(previous) }).sort();
    return `node ${quote(node)} is not allowed to modify labels: ${names.join(", ")}`;
  }
  if (previous === undefined) return undefined;
  if (!jsonEqual(fieldAt(object, "spec", "taints") ?? [], fieldAt(previous, "spec", "taints") ?? [])) {
    return `node ${quote(node)} is not allowed to modify taints`;
  }
  // An owner that does not exist would have the Node collected as garbage.
  if (!jsonEqual(object.metadata.ownerReferences ?? [], previous.metadata.ownerReferences ?? [])) {
    return `node ${quote(node)} is not allowed to modify ownerReferences`;
  }
  return undefined;
}

function restrictedLabels(object: ApiObject | undefined): Record<string, string> {
  const labels = Object.entries(object?.metadata.labels ?? {});
  return Object.fromEntries(labels.filter(([key]) => RESTRICTED_LABEL.test(key)));
}

function podChange(node: string, { object, previous }: NodeWrite): string | undefined {
  if (previous !== undefined && textAt(previous, "spec", "nodeName") !== node) {
    return `node ${quote(node)} can only update pod status for pods with spec.nodeName set to itself`;
  }
  if (previous === undefined || jsonEqual(object.metadata.labels ?? {}, previous.metadata.labels ?? {}))
    return undefined;
  return `node ${quote(node)} cannot update labels through pod status`;
}

/** A node gets tokens for its pods, not for their accounts: a token must die with the pod. */
function unboundToken(store: ObjectStore, node: string, { access, object }: NodeWrite): string | undefined {
  const bound = fieldAt(object, "spec", "boundObjectRef");
  const [kind, name, uid] = [textAt(bound, "kind"), textAt(bound, "name"), textAt(bound, "uid")];
  if (kind !== "Pod" || name === "") return "node requested token not bound to a pod";
  if (uid === "") return "node requested token with a pod binding without a uid";
  const pod = readObject(store, { resource: "pods", namespace: access.namespace, name });
  if (pod === undefined) return undefined; // reported as 404 by the request itself
  if (pod.metadata.uid !== uid)
    return `the UID in the bound object reference (${uid}) does not match the UID in record`;
  if (textAt(pod, "spec", "nodeName") === node) return undefined;
  return "node requested token bound to a pod scheduled on a different node";
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function nameOf(object: ApiObject): string {
  return object.metadata.name ?? "";
}
