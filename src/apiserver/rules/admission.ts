import type { Random } from "../../base/random.ts";
import { resourceName } from "../../kube/object.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { applyLimitRanges, checkLimitRanges } from "./admission-limit-range.ts";
import { checkNamespace } from "./admission-namespace.ts";
import { chooseClass, protectFromDeletion, refuseResize } from "./admission-storage.ts";
import { addTolerations, setPriority } from "./admission-pods.ts";
import { useRuntimeClass } from "./admission-runtime-class.ts";
import { allocateService } from "./admission-services.ts";
import { useServiceAccount } from "./admission-service-account.ts";

/**
 * What a write means beyond its own object (spec/apiserver.md, section 13.2): other objects are looked
 * at, fields are added in their light, and some requests are refused. The effects are those of the
 * plugins that a real server has switched on, in their order.
 */
export interface AdmissionDeps {
  /** `resource` as in `storageclasses.storage.k8s.io`; undefined when there is none of that name. */
  getObject(resource: string, namespace: string | undefined, name: string): ApiObject | undefined;
  /** Of all namespaces, unless one is named. */
  listObjects(resource: string, namespace?: string): Iterable<ApiObject>;
  readonly random: Random;
  /** Absent where no admission policy has anything to say. */
  readonly policies?: PolicyAdmission | undefined;
}

/** What clients have the server ask of every write, in the form of expressions; policies/ has the work. */
export interface PolicyAdmission {
  /**
   * The object to go on with; runs after everything else that changes it. `settle` gives a changed object its defaults
   * and what `admit` adds.
   */
  mutate(request: AdmissionRequest, settle: (object: ApiObject) => ApiObject): ApiObject;
  /** Throws the answer when a policy denies the request; runs after everything else but quota. */
  validate(request: AdmissionRequest): void;
}

export interface AdmissionOptions {
  /** Keeps pods off a new node until somebody finds it ready. Off: nothing here would take the taint away. */
  readonly taintNewNodes?: boolean;
}

export interface AdmissionRequest {
  readonly operation: "CREATE" | "UPDATE";
  readonly kind: Kind;
  /** With defaults applied; its metadata has the final name and namespace. */
  readonly object: ApiObject;
  /** On UPDATE: what is stored. */
  readonly old?: ApiObject;
  readonly subresource?: "status" | undefined;
}

/** The object to go on with. Throws the answer when the request is refused; runs before validation. */
export function admit(
  deps: AdmissionDeps,
  { operation, kind, object, old, subresource }: AdmissionRequest,
  { taintNewNodes = false }: AdmissionOptions = {},
): ApiObject {
  if (subresource !== undefined) return object;
  if (operation === "CREATE" && kind.namespaced) checkNamespace(deps, kind, object.metadata);
  switch (resourceName(kind)) {
    case "pods":
      if (operation === "UPDATE") return addTolerations(setPriority(deps, object, old));
      return createPod(deps, object);
    case "services":
      return allocateService(deps, object, old);
    case "nodes":
      return operation === "CREATE" && taintNewNodes ? taintNewNode(object) : object;
    case "persistentvolumes":
      return operation === "CREATE" ? protectFromDeletion(object, "kubernetes.io/pv-protection") : object;
    case "persistentvolumeclaims":
      if (operation === "UPDATE") return object;
      return chooseClass(deps, protectFromDeletion(object, "kubernetes.io/pvc-protection"));
    case "volumeattributesclasses.storage.k8s.io":
      return operation === "CREATE" ? protectFromDeletion(object, "kubernetes.io/vac-protection") : object;
    default:
      return object;
  }
}

/** Throws the answer for a valid write that is refused all the same; runs after validation. */
export function review(
  deps: AdmissionDeps,
  { operation, kind, object, old, subresource }: AdmissionRequest,
): void {
  if (subresource !== undefined) return;
  const resource = resourceName(kind);
  const isClaim = resource === "persistentvolumeclaims";
  if (isClaim || (resource === "pods" && operation === "CREATE")) checkLimitRanges(deps, kind, object);
  if (isClaim && operation === "UPDATE" && old !== undefined) refuseResize(deps, kind, object, old);
}

/** In the order of a real server's plugins. */
function createPod(deps: AdmissionDeps, pod: ApiObject): ApiObject {
  const ranged = applyLimitRanges(deps, useServiceAccount(deps, pod));
  return addTolerations(useRuntimeClass(deps, setPriority(deps, ranged)));
}

const NOT_READY = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" };

function taintNewNode(node: ApiObject): ApiObject {
  const spec = (node["spec"] ?? {}) as { readonly taints?: readonly (typeof NOT_READY)[] };
  const { taints = [] } = spec;
  const isTainted = taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect);
  return isTainted ? node : { ...node, spec: { ...spec, taints: [...taints, NOT_READY] } };
}
