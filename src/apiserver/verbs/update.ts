import { badRequest, invalid } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { replaceObject } from "../replace.ts";
import { keyFor, objectResponse, requesterOf, type Verb } from "../request.ts";
import { decodeBody } from "../schema/body.ts";
import { toKept } from "../spelling.ts";
import { trackWrites } from "../tracking.ts";
import { checkNamespace, createObject } from "./create.ts";

/** PUT: the whole object, or its status, as the client wants it. */
export const update: Verb = async (deps, request) => {
  const { kind, namespace, name, subresource, part, query, headers, body, rights } = request;
  const { dryRun, fieldValidation, fieldManager } = parseWriteOptions(query, "UpdateOptions");
  const { object: decoded, warnings } = decodeBody(kind, { headers, body }, fieldValidation);
  const object = toKept(kind, decoded);
  checkName(object, name);
  checkNamespace(object, namespace);
  const key = keyFor(kind, namespace, name);
  const track = trackWrites(deps, request, fieldManager);
  if (deps.store.get(key) === undefined && kind.createOnUpdate) {
    rights.checkCreate();
    const named = { ...object, metadata: { ...object.metadata, name } };
    const requester = requesterOf(request, { dryRun });
    const creation = { namespace, object: named, dryRun, rights, track, requester };
    const text = await createObject(deps, kind, creation);
    return objectResponse(201, text, warnings);
  }
  // Asked for within the replacement, so that a missing object is 404 before its body is judged.
  const desire = () => {
    checkConditional(kind, name, object);
    return { ...object, metadata: { ...object.metadata, name } };
  };
  return objectResponse(
    200,
    await replaceObject(deps, {
      kind,
      key,
      subresource,
      part,
      dryRun,
      desire,
      rights,
      track,
      requester: requesterOf(request, { dryRun }),
    }),
    warnings,
  );
};

/** A body may leave its name out, but must not contradict the path. */
export function checkName({ metadata }: ApiObject, name: string): void {
  if (metadata.name === undefined || metadata.name === "" || metadata.name === name) return;
  throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
}

/** Kinds that several writers share refuse a PUT that does not say which version it replaces. */
function checkConditional(kind: Kind, name: string, { metadata }: ApiObject): void {
  const { resourceVersion = "" } = metadata;
  if (kind.unconditionalUpdate || (resourceVersion !== "" && resourceVersion !== "0")) return;
  const message = "Invalid value: 0x0: must be specified for an update";
  // Upstream names the plural here, not the kind as everywhere else.
  throw invalid({ group: kind.group, kind: kind.plural }, name, [
    { field: "metadata.resourceVersion", reason: "FieldValueInvalid", message },
  ]);
}
