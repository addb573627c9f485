import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { AdmissionDeps, AdmissionRequest, PolicyAdmission } from "../rules/admission.ts";
import type { GroupVersionKind } from "../schema/schema.ts";
import { toKept, toShown } from "../spelling.ts";
import type { ObjectStore } from "../store/store.ts";
import { mutateRequest } from "./mutate.ts";
import { policiesOf, type Hook } from "./policy-index.ts";
import { isExempt, type Operation, type PolicyRequest, type Requester } from "./request.ts";
import { validateRequest } from "./validate.ts";

/**
 * Policies as the order of admission calls them. Undefined where there is nothing to ask: no policy is in force, the
 * kind is exempt, or the server itself writes. All of them are asked in one go, without an await, so that they are of
 * one state of the store.
 */
export function policyAdmission(
  deps: AdmissionDeps,
  store: ObjectStore,
  kind: Kind,
  requester: Requester | undefined,
): PolicyAdmission | undefined {
  if (requester === undefined || isExempt(kind)) return undefined;
  const { mutating, validating } = policiesOf(store);
  const [mutators, validators] = [mutating.hooks(), validating.hooks()];
  if (mutators.length === 0 && validators.length === 0) return undefined;
  return {
    mutate(request, settle) {
      if (mutators.length === 0) return request.object;
      const asked = { ...toPolicyRequest(request, requester), object: toShown(request.kind, request.object) };
      const settled = (object: ApiObject) => toShown(request.kind, settle(toKept(request.kind, object)));
      const mutated = mutateRequest(deps, mutators, asked, settled);
      return mutated === asked.object ? request.object : toKept(request.kind, mutated);
    },
    validate(request) {
      if (validators.length > 0) validateRequest(deps, validators, toPolicyRequest(request, requester));
    },
  };
}

function toPolicyRequest(
  { operation, kind, object, old }: AdmissionRequest,
  requester: Requester,
): PolicyRequest {
  return {
    operation,
    resource: kind,
    bodyKind: kind,
    requester,
    ...placeOf(kind, object),
    object: toShown(kind, object),
    old: old === undefined ? undefined : toShown(kind, old),
  };
}

function placeOf(kind: Kind, { metadata }: ApiObject): { readonly name: string; readonly namespace: string } {
  const { name = "", namespace = "" } = metadata;
  return { name, namespace: isNamespace(kind) ? name : namespace };
}

function isNamespace({ group, kind }: Kind): boolean {
  return group === "" && kind === "Namespace";
}

/** Throws the answer where a policy denies that the object goes. */
export function validateDeletion(
  deps: AdmissionDeps,
  store: ObjectStore,
  { kind, object, requester }: { kind: Kind; object: () => ApiObject; requester: Requester | undefined },
): void {
  const hooks = validatorsOf(store, kind, requester);
  if (hooks.length === 0 || requester === undefined) return;
  const old = object();
  validateRequest(deps, hooks, {
    operation: "DELETE",
    resource: kind,
    bodyKind: kind,
    requester,
    ...placeOf(kind, old),
    object: undefined,
    old: toShown(kind, old),
  });
}

export interface BodyRequest {
  readonly operation: Operation;
  readonly resource: Kind;
  readonly bodyKind: GroupVersionKind;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly object: ApiObject;
  readonly old?: ApiObject;
}

/**
 * For a subresource whose body is not its object, such as a Scale or an Eviction: what mutating policies make of the
 * body; throws where a policy denies it.
 */
export function admitBody(
  deps: AdmissionDeps,
  store: ObjectStore,
  { namespace = "", old, ...body }: BodyRequest,
  requester: Requester,
): ApiObject {
  const request = {
    ...body,
    namespace: isNamespace(body.resource) ? body.name : namespace,
    old,
    requester,
  };
  const mutators = policiesOf(store).mutating.hooks();
  const object =
    mutators.length === 0 ? body.object : mutateRequest(deps, mutators, request, (settled) => settled);
  const validators = validatorsOf(store, body.resource, requester);
  if (validators.length > 0) validateRequest(deps, validators, { ...request, object });
  return object;
}

function validatorsOf(store: ObjectStore, kind: Kind, requester: Requester | undefined): readonly Hook[] {
  return requester === undefined || isExempt(kind) ? [] : policiesOf(store).validating.hooks();
}
