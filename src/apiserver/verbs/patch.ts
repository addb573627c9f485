import { isKubeError } from "../../kube/errors.ts";
import { applyJsonPatch } from "../../kube/patch/json-patch.ts";
import { applyMergePatch } from "../../kube/patch/merge-patch.ts";
import { applyStrategicPatch } from "../../kube/patch/strategic-patch.ts";
import { badRequest, StatusError } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import { bodyText, mediaType } from "../negotiation.ts";
import type { ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { replaceObject } from "../replace.ts";
import { keyFor, objectResponse, type Verb } from "../request.ts";
import { decodePatched } from "../schema/body.ts";
import { patchSchemaOf } from "../schema/patch-schema.ts";
import { toKept, toShown } from "../spelling.ts";
import { trackWrites } from "../tracking.ts";
import { refuseForce } from "../apply/apply-options.ts";
import { apply } from "./apply.ts";
import { checkNamespace } from "./create.ts";
import { checkName } from "./update.ts";

/** PATCH: read, change, then the way of a PUT; repeated if somebody else writes in between. */
export const patch: Verb = async (deps, request) => {
  const { kind, namespace, name, subresource, query, headers, body, rights } = request;
  if (mediaType(headers["content-type"]) === APPLY) return apply(deps, request);
  const { dryRun, fieldValidation, fieldManager } = parseWriteOptions(query, "PatchOptions");
  refuseForce(query);
  const applied = choosePatch(kind, headers["content-type"]);
  const patchText = bodyText(body);
  const parsed = parsePatch(patchText);
  let warnings: readonly string[] = [];
  const desire = (stored: ApiObject) => {
    const decoded = decodePatched(kind, applyTo(toShown(kind, stored), { apply: applied, patch: parsed }), {
      fieldValidation,
      patchText,
    });
    checkName(decoded.object, name);
    checkNamespace(decoded.object, namespace);
    warnings = decoded.warnings;
    // A patch that takes the name away means nothing by it.
    return toKept(kind, { ...decoded.object, metadata: { ...decoded.object.metadata, name } });
  };
  const key = keyFor(kind, namespace, name);
  const track = trackWrites(deps, request, fieldManager);
  const text = await replaceObject(deps, {
    kind,
    key,
    subresource,
    dryRun,
    desire,
    rights,
    track,
    isPatch: true,
  });
  return objectResponse(200, text, warnings);
};

const APPLY = "application/apply-patch+yaml";

type ApplyPatch = (document: unknown, patch: unknown) => unknown;

function choosePatch(kind: Kind, header: string | undefined): ApplyPatch {
  const type = mediaType(header);
  if (type === "application/json-patch+json") return applyJsonPatch;
  if (type === "application/merge-patch+json") return applyMergePatch;
  const schema = type === "application/strategic-merge-patch+json" ? patchSchemaOf(kind) : undefined;
  if (schema !== undefined) return (document, patch) => applyStrategicPatch(document, patch, schema);
  throw new StatusError(415, "415: Unsupported Media Type", { details: {} });
}

function parsePatch(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function applyTo(current: ApiObject, { apply, patch }: { apply: ApplyPatch; patch: unknown }): unknown {
  try {
    return apply(current, patch);
  } catch (error) {
    if (!isKubeError(error, "Invalid")) throw error;
    // The real server does not say which operation failed; clients know this sentence.
    throw new StatusError(422, "the server rejected our request due to an error in our request", {
      details: {},
    });
  }
}
