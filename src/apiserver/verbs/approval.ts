import type { HandlerResponse } from "../../kube/handler.ts";
import { notFound } from "../errors.ts";
import type { ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { replaceObject } from "../replace.ts";
import { keyFor, objectResponse, requesterOf, type ResourceRequest, type VerbDeps } from "../request.ts";
import { decodeBody, decodePatched } from "../schema/body.ts";
import { trackWrites } from "../tracking.ts";
import { readPatch } from "./patch.ts";
import { checkName } from "./update.ts";

/** `/approval` of a CertificateSigningRequest: whether it is to be signed, and nothing else of its status. */
export async function approval(deps: VerbDeps, request: ResourceRequest): Promise<HandlerResponse> {
  const { kind, name, method } = request;
  if (method === "GET") {
    const stored = deps.store.get(keyFor(kind, undefined, name));
    if (stored === undefined) throw notFound(kind, name);
    return objectResponse(200, stored.text, []);
  }
  const isPatch = method === "PATCH";
  const options = parseWriteOptions(request.query, isPatch ? "PatchOptions" : "UpdateOptions");
  const { dryRun, fieldValidation, fieldManager } = options;
  let warnings: readonly string[] = [];
  const change = isPatch ? readPatch(kind, request.headers["content-type"], request.body) : undefined;
  const sent = isPatch ? undefined : decodeBody(kind, request, fieldValidation);
  const text = await replaceObject(deps, {
    kind,
    key: keyFor(kind, undefined, name),
    subresource: "status",
    isPatch,
    dryRun,
    rights: request.rights,
    track: trackWrites(deps, request, fieldManager),
    requester: requesterOf(request, { dryRun, subresource: "approval" }),
    desire(current) {
      const wanted =
        sent ??
        (change === undefined ? undefined : decodePatched(kind, change(current), { fieldValidation }));
      if (wanted === undefined) return current;
      checkName(wanted.object, name);
      warnings = wanted.warnings;
      return decided(current, wanted.object);
    },
  });
  return objectResponse(200, text, warnings);
}

function decided(current: ApiObject, wanted: ApiObject): ApiObject {
  const { conditions } = (wanted["status"] ?? {}) as { readonly conditions?: unknown };
  const status = { ...(current["status"] as object | undefined) };
  return { ...wanted, status: { ...status, ...(conditions === undefined ? {} : { conditions }) } };
}
