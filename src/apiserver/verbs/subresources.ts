import { assert } from "../../base/assert.ts";
import { formatJson } from "../../kube/json-text.ts";
import { resourceName } from "../../kube/object.ts";
import { admissionDeps } from "../admission.ts";
import { parseDeleteOptions } from "../delete-options.ts";
import { conflict, methodNotAllowed } from "../errors.ts";
import { KINDS, namespaces, pods, type Kind } from "../kinds.ts";
import { renderObject, shortForm, type ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { admitBody } from "../policies/admission.ts";
import { changeObject } from "../replace.ts";
import {
  jsonResponse,
  keyFor,
  objectResponse,
  requesterOf,
  type ResourceRequest,
  type Verb,
  type VerbDeps,
} from "../request.ts";
import { bindPod, checkBinding } from "../rules/binding.ts";
import { charge, costOfEviction } from "../rules/disruption.ts";
import { checkEviction, evictPod } from "../rules/eviction.ts";
import { finalizeNamespace } from "../rules/namespace.ts";
import { decodeBody } from "../schema/body.ts";
import type { GroupVersionKind } from "../schema/schema.ts";
import type { StoreKey } from "../store/store.ts";
import { approval } from "./approval.ts";
import { deleteObject } from "./delete.ts";
import { get } from "./get.ts";
import { patch } from "./patch.ts";
import { scale } from "./scale.ts";
import { update } from "./update.ts";

/** Subresources that are more than a part of their object, by `plural/subresource` (spec/apiserver.md, section 14). */
const SUBRESOURCE_VERBS: Readonly<Record<string, Verb>> = {
  "certificatesigningrequests/approval": approval,
  "deployments/scale": scale,
  "replicasets/scale": scale,
  "statefulsets/scale": scale,
  "replicationcontrollers/scale": scale,
  "pods/binding": bind,
  "pods/eviction": evict,
  "pods/ephemeralcontainers": changePart("ephemeralcontainers"),
  "pods/resize": changePart("resize"),
  "namespaces/finalize": finalize,
  "serviceaccounts/token": token,
};

const BINDING = { group: "", version: "v1", kind: "Binding" };
const TOKEN_REQUEST = { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" };
const EVICTION = { group: "policy", version: "v1", kind: "Eviction" };

/** Gives a pod its node; the only way to do so after it was created. */
async function bind(deps: VerbDeps, request: ResourceRequest) {
  const { dryRun, fieldValidation } = parseWriteOptions(request.query, "CreateOptions");
  const { object: binding } = decodeBody(BINDING, request, fieldValidation);
  // The general form, POST bindings, has the pod's name in its body alone.
  const name = request.name || (binding.metadata.name ?? "");
  checkBinding(binding, name);
  admitCreation(
    deps,
    { ...request, name },
    { subresource: "binding", bodyKind: BINDING, object: binding, dryRun },
  );
  await changeObject(deps, {
    kind: pods,
    key: keyFor(pods, request.namespace, name),
    dryRun,
    rights: request.rights,
    decide: (current) => bindPod(current, binding, deps.clock.wall()),
  });
  return created();
}

/** `/ephemeralcontainers` adds containers to a pod that runs, `/resize` changes what its containers may use. */
function changePart(part: "ephemeralcontainers" | "resize"): Verb {
  return async (deps, request) => {
    if (request.method === "GET") return get(deps, request);
    return request.method === "PATCH"
      ? patch(deps, { ...request, part })
      : update(deps, { ...request, part });
  };
}

/** Policies see the body of such a subresource. What a mutating one makes of it is judged, and then dropped. */
function admitCreation(
  deps: VerbDeps,
  request: ResourceRequest,
  { subresource, bodyKind, object, dryRun }: CreatedBody,
): void {
  const { kind: resource, name, namespace } = request;
  admitBody(
    admissionDeps(deps),
    deps.store,
    { operation: "CREATE", resource, bodyKind, name, namespace, object },
    requesterOf(request, { dryRun, subresource }),
  );
}

interface CreatedBody {
  readonly subresource: string;
  readonly bodyKind: GroupVersionKind;
  readonly object: ApiObject;
  readonly dryRun: boolean;
}

/** A DELETE that says why. */
async function evict(deps: VerbDeps, request: ResourceRequest) {
  const { object: eviction } = decodeBody(EVICTION, request);
  checkEviction(eviction, request.name);
  const options = parseDeleteOptions({
    ...request,
    headers: {},
    body: formatJson(eviction["deleteOptions"] ?? {}),
  });
  admitCreation(deps, request, {
    subresource: "eviction",
    bodyKind: EVICTION,
    object: eviction,
    dryRun: options.dryRun,
  });
  const key = keyFor(pods, request.namespace, request.name);
  await payForEviction(deps, { key, dryRun: options.dryRun });
  const plan = (stored: Parameters<typeof shortForm>[1]) =>
    evictPod(shortForm(pods, stored), options, deps.clock.wall());
  // Policies are asked about the eviction, as in a real server, not about the deletion that it comes to.
  await deleteObject(deps, pods, key, { options, plan });
  return created();
}

/**
 * Takes one disruption off the pod's budget, which may refuse. Charged first and by compare and swap: of two evictions
 * that come at once, a budget for one lets one through. A pod that is gone costs nothing; deleting it will say so.
 */
async function payForEviction(
  deps: VerbDeps,
  { key, dryRun }: { readonly key: StoreKey; readonly dryRun: boolean },
): Promise<void> {
  for (let attempt = 0; attempt < CHARGE_TRIES; attempt++) {
    const stored = deps.store.get(key);
    if (stored === undefined) return;
    const { resource, namespace } = { resource: resourceName(budgets), namespace: key.namespace };
    const all = Array.from(deps.store.scan({ resource, namespace }), (one) => shortForm(budgets, one));
    const cost = costOfEviction(shortForm(pods, stored), all);
    if (cost.kind === "free") return;
    const budget = deps.store.get({ resource, namespace, name: cost.budget });
    if (budget === undefined) continue;
    const next = charge(budgets, shortForm(budgets, budget), key.name, deps.clock.wall());
    if (dryRun) return;
    const render = (revision: number) => renderObject(budgets, next, revision);
    const outcome = await deps.store.update(budget.key, render, { expected: budget.revision });
    if (outcome.kind === "committed") return;
  }
  throw conflict(pods, key.name);
}

/** Each lost try is somebody else's write of the budget that got through. */
const CHARGE_TRIES = 10;

const budgets = servedKind("policy", "PodDisruptionBudget");

function servedKind(group: string, name: string): Kind {
  const found = KINDS.find((kind) => kind.group === group && kind.kind === name);
  assert(found !== undefined, `no kind ${name} of ${group}`);
  return found;
}

/** Takes finalizers off a namespace's spec; the last one lets it go. */
async function finalize(deps: VerbDeps, request: ResourceRequest) {
  const { dryRun, fieldValidation } = parseWriteOptions(request.query, "UpdateOptions");
  const { object, warnings } = decodeBody(namespaces, request, fieldValidation);
  const text = await changeObject(deps, {
    kind: namespaces,
    key: keyFor(namespaces, undefined, request.name),
    dryRun,
    rights: request.rights,
    decide(current): ApiObject {
      const wanted = {
        operation: "UPDATE",
        resource: namespaces,
        bodyKind: namespaces,
        old: current,
      } as const;
      const { name } = request;
      const requester = requesterOf(request, { dryRun, subresource: "finalize" });
      admitBody(admissionDeps(deps), deps.store, { ...wanted, name, namespace: name, object }, requester);
      return finalizeNamespace(current, object);
    },
  });
  return objectResponse(200, text, warnings);
}

/** A token for a service account, by which its pods are known. */
async function token(deps: VerbDeps, request: ResourceRequest) {
  const { namespace = "", name, rights } = request;
  const { object } = decodeBody(TOKEN_REQUEST, request);
  admitCreation(deps, request, { subresource: "token", bodyKind: TOKEN_REQUEST, object, dryRun: false });
  if (rights.requestToken === undefined) throw methodNotAllowed();
  return jsonResponse(201, formatJson(rights.requestToken({ namespace, name }, object)));
}

export function subresourceVerb(plural: string, subresource: string): Verb {
  const verb = SUBRESOURCE_VERBS[`${plural}/${subresource}`];
  if (verb === undefined) throw methodNotAllowed();
  return verb;
}

function created() {
  const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
  return jsonResponse(201, JSON.stringify(success));
}
