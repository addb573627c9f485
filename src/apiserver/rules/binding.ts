import type { Binding } from "kubernetes-types/core/v1.js";
import { badRequest, conflict, invalid } from "../errors.ts";
import { pods } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { notSupported, required, type Cause } from "./causes.ts";
import { without, type LooseObject } from "./loose.ts";
import { withCondition } from "./pod-conditions.ts";
import type { PodObject } from "./pod-defaults.ts";

type BindingObject = LooseObject<Binding>;

/** How the real server names this endpoint in its conflicts. */
const PODS_BINDING = { ...pods, plural: "pods/binding" };

/** What is wrong with a Binding by itself, sent to the pod `name`; throws the answer. */
export function checkBinding(binding: BindingObject, name: string): void {
  if ((binding.metadata.name ?? "") !== name) {
    throw badRequest("name in URL does not match name in Binding object");
  }
  const { kind = "", name: node = "" } = binding.target ?? {};
  const causes: Cause[] = [
    ...(kind === "" || kind === "Node" ? [] : [notSupported("target.kind", kind, ["Node", "<empty>"])]),
    ...(node === "" ? [required("target.name")] : []),
  ];
  if (causes.length > 0) throw invalid({ group: "", kind: "Binding" }, name, causes);
}

/**
 * The pod on its node. Throws 409 when it has one already or is leaving; a uid or version in the
 * Binding says which pod was meant. The generation stays: a node is not something the pod asked for.
 */
export function bindPod(pod: PodObject, binding: BindingObject, now: Date): ApiObject {
  const { name = "" } = pod.metadata;
  const problem = bindingProblem(pod, binding);
  if (problem !== undefined) throw conflict(PODS_BINDING, name, problem);
  const annotations = { ...pod.metadata.annotations, ...binding.metadata.annotations };
  const bound: PodObject = {
    ...pod,
    metadata: { ...pod.metadata, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) },
    spec: { ...pod.spec, nodeName: binding.target?.name ?? "" },
    status: without(pod.status ?? {}, "nominatedNodeName"),
  };
  return withCondition(bound, { type: "PodScheduled", status: "True" }, now);
}

function bindingProblem(pod: PodObject, binding: BindingObject): string | undefined {
  const { name = "", uid = "", resourceVersion = "", deletionTimestamp } = pod.metadata;
  const { uid: wantedUid = "", resourceVersion: wantedVersion = "" } = binding.metadata;
  const { nodeName = "", schedulingGates = [] } = pod.spec ?? {};
  if (wantedUid !== "" && wantedUid !== uid) {
    return `Precondition failed: UID in precondition: ${wantedUid}, UID in object meta: ${uid}`;
  }
  if (wantedVersion !== "" && wantedVersion !== resourceVersion) {
    return `Precondition failed: ResourceVersion in precondition: ${wantedVersion}, ResourceVersion in object meta: ${resourceVersion}`;
  }
  if (deletionTimestamp !== undefined) return `pod ${name} is being deleted, cannot be assigned to a host`;
  if (nodeName !== "") return `pod ${name} is already assigned to node ${JSON.stringify(nodeName)}`;
  return schedulingGates.length === 0 ? undefined : `pod ${name} has non-empty .spec.schedulingGates`;
}
