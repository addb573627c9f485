import type { HandlerResponse } from "../../kube/handler.ts";
import { admissionDeps } from "../admission.ts";
import { conflict, invalid, notFound } from "../errors.ts";
import { scaleOf, withReplicas } from "../rules/scale.ts";
import { parseStored, shorten, type ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { admitBody } from "../policies/admission.ts";
import { replaceObject } from "../replace.ts";
import {
  keyFor,
  objectResponse,
  jsonResponse,
  requesterOf,
  type ResourceRequest,
  type VerbDeps,
} from "../request.ts";
import { notNegative } from "../rules/causes.ts";
import { decodeBody, decodePatched } from "../schema/body.ts";
import { trackWrites } from "../tracking.ts";
import { checkNamespace } from "./create.ts";
import { readPatch } from "./patch.ts";
import { checkName } from "./update.ts";

/** `/scale`: how many replicas, whatever the kind that has them (spec/apiserver.md, section 14). */
const SCALE = { group: "autoscaling", version: "v1", kind: "Scale" };

export async function scale(deps: VerbDeps, request: ResourceRequest): Promise<HandlerResponse> {
  switch (request.method) {
    case "PUT":
      return update(deps, request);
    case "PATCH":
      return patch(deps, request);
    default: {
      const stored = deps.store.get(keyFor(request.kind, request.namespace, request.name));
      if (stored === undefined) throw notFound(request.kind, request.name);
      return jsonResponse(200, JSON.stringify(scaleOf(parseStored(stored))));
    }
  }
}

function update(deps: VerbDeps, request: ResourceRequest): Promise<HandlerResponse> {
  const { dryRun, fieldValidation, fieldManager } = parseWriteOptions(request.query, "UpdateOptions");
  const { object, warnings } = decodeBody(SCALE, request, fieldValidation);
  checkName(object, request.name);
  checkNamespace(object, request.namespace);
  return store(deps, request, { wanted: () => object, dryRun, fieldManager, warnings: () => warnings });
}

function patch(deps: VerbDeps, request: ResourceRequest): Promise<HandlerResponse> {
  const { dryRun, fieldValidation, fieldManager } = parseWriteOptions(request.query, "PatchOptions");
  const change = readPatch(SCALE, request.headers["content-type"], request.body);
  let warnings: readonly string[] = [];
  const wanted = (current: ApiObject) => {
    const decoded = decodePatched(SCALE, change(scaleOf(current)), { fieldValidation });
    checkName(decoded.object, request.name);
    warnings = decoded.warnings;
    return decoded.object;
  };
  return store(deps, request, { wanted, dryRun, fieldManager, warnings: () => warnings });
}

interface Rescale {
  readonly wanted: (current: ApiObject) => ApiObject;
  readonly dryRun: boolean;
  readonly fieldManager: string | undefined;
  readonly warnings: () => readonly string[];
}

/** The way of a PUT of the object itself, with the replicas of the scale in it. */
async function store(
  deps: VerbDeps,
  request: ResourceRequest,
  { wanted, dryRun, fieldManager, warnings }: Rescale,
): Promise<HandlerResponse> {
  const { kind, namespace, name, rights } = request;
  const desire = (stored: ApiObject): ApiObject => {
    const asked = admitBody(
      admissionDeps(deps),
      deps.store,
      {
        operation: "UPDATE",
        resource: kind,
        bodyKind: SCALE,
        name,
        namespace,
        object: wanted(stored),
        old: scaleOf(stored),
      },
      requesterOf(request, { dryRun, subresource: "scale" }),
    );
    const causes = notNegative("spec.replicas", replicasOf(asked));
    if (causes.length > 0) throw invalid({ group: "autoscaling", kind: "Scale" }, name, causes);
    const { resourceVersion = "", uid = "" } = asked.metadata;
    if (resourceVersion !== "" && resourceVersion !== stored.metadata.resourceVersion)
      throw conflict(kind, name);
    if (uid !== "" && uid !== stored.metadata.uid) throw conflict(kind, name);
    return shorten(kind, withReplicas(stored, replicasOf(asked)));
  };
  const text = await replaceObject(deps, {
    kind,
    key: keyFor(kind, namespace, name),
    subresource: undefined,
    dryRun,
    desire,
    rights,
    track: trackWrites(deps, { ...request, subresource: "scale" }, fieldManager),
  });
  return objectResponse(200, JSON.stringify(scaleOf(JSON.parse(text) as ApiObject)), warnings());
}

function replicasOf(scale: ApiObject): number {
  return (scale["spec"] as { readonly replicas?: number } | undefined)?.replicas ?? 0;
}
