import { parseDeleteOptions } from "../delete-options.ts";
import { methodNotAllowed } from "../errors.ts";
import { namespaces, pods } from "../kinds.ts";
import { shortForm, type ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { changeObject } from "../replace.ts";
import {
  jsonResponse,
  keyFor,
  objectResponse,
  type ResourceRequest,
  type Verb,
  type VerbDeps,
} from "../request.ts";
import { bindPod, checkBinding } from "../rules/binding.ts";
import { checkEviction, evictPod } from "../rules/eviction.ts";
import { finalizeNamespace } from "../rules/namespace.ts";
import { decodeBody } from "../schema/body.ts";
import { deleteObject } from "./delete.ts";

/** Subresources that are more than a part of their object, by `plural/subresource` (spec/apiserver.md, section 14). */
const SUBRESOURCE_VERBS: Readonly<Record<string, Verb>> = {
  "pods/binding": bind,
  "pods/eviction": evict,
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
  await changeObject(deps, {
    kind: pods,
    key: keyFor(pods, request.namespace, name),
    dryRun,
    rights: request.rights,
    decide: (current) => bindPod(current, binding, deps.clock.wall()),
  });
  return created();
}

/** A DELETE that says why. */
async function evict(deps: VerbDeps, request: ResourceRequest) {
  const { object: eviction } = decodeBody(EVICTION, request);
  checkEviction(eviction, request.name);
  const options = parseDeleteOptions({
    ...request,
    headers: {},
    body: JSON.stringify(eviction["deleteOptions"] ?? {}),
  });
  const key = keyFor(pods, request.namespace, request.name);
  const plan = (stored: Parameters<typeof shortForm>[1]) =>
    evictPod(shortForm(pods, stored), options, deps.clock.wall());
  await deleteObject(deps, pods, key, options, plan);
  return created();
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
    decide: (current): ApiObject => finalizeNamespace(current, object),
  });
  return objectResponse(200, text, warnings);
}

/** A token for a service account, by which its pods are known. */
async function token(_deps: VerbDeps, { namespace = "", name, rights, ...request }: ResourceRequest) {
  const { object } = decodeBody(TOKEN_REQUEST, request);
  if (rights.requestToken === undefined) throw methodNotAllowed();
  return jsonResponse(201, JSON.stringify(rights.requestToken({ namespace, name }, object)));
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
