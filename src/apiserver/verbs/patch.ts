import { parseJson } from "../../kube/json-text.ts";
import { isKubeError } from "../../kube/errors.ts";
import { isJsonObject } from "../../kube/patch/json.ts";
import { applyJsonPatch } from "../../kube/patch/json-patch.ts";
import { applyMergePatch } from "../../kube/patch/merge-patch.ts";
import { applyStrategicPatch } from "../../kube/patch/strategic-patch.ts";
import { refuseForce } from "../apply/apply-options.ts";
import { badRequest, StatusError } from "../errors.ts";
import { bodyText, mediaType } from "../negotiation.ts";
import type { ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import type { Verb } from "../request.ts";
import { findDuplicateKeys } from "../schema/duplicate-keys.ts";
import { patchSchemaOf } from "../schema/patch-schema.ts";
import type { GroupVersionKind } from "../schema/schema.ts";
import { trackWrites } from "../tracking.ts";
import { apply } from "./apply.ts";
import { storePatched } from "./patched.ts";

/** PATCH: read, change, then the way of a PUT; repeated if somebody else writes in between. */
export const patch: Verb = async (deps, request) => {
  const { kind, query, headers, body } = request;
  if (mediaType(headers["content-type"]) === APPLY) return apply(deps, request);
  const { dryRun, fieldValidation, fieldManager } = parseWriteOptions(query, "PatchOptions");
  refuseForce(query);
  const change = readPatch(kind, headers["content-type"], body);
  return storePatched(deps, request, {
    change,
    track: trackWrites(deps, request, fieldManager),
    duplicates: () => (fieldValidation === "Ignore" ? [] : findDuplicateKeys(bodyText(body))),
    createsMissing: false,
    dryRun,
    fieldValidation,
  });
};

const APPLY = "application/apply-patch+yaml";

/** What a patch, whatever its type but apply, makes of an object of this kind. */
export function readPatch(
  kind: GroupVersionKind,
  contentType: string | undefined,
  body: string | Uint8Array,
): (current: ApiObject | undefined) => unknown {
  const apply = choosePatch(kind, contentType);
  const patch = parsePatch(bodyText(body));
  return (current) => applyTo(current, { apply, patch });
}

type ApplyPatch = (document: unknown, patch: unknown) => unknown;

function choosePatch(kind: GroupVersionKind, header: string | undefined): ApplyPatch {
  const type = mediaType(header);
  if (type === "application/json-patch+json") return applyJsonPatch;
  if (type === "application/merge-patch+json") return applyMergePatch;
  const schema = type === "application/strategic-merge-patch+json" ? patchSchemaOf(kind) : undefined;
  if (schema === undefined) throw new StatusError(415, "415: Unsupported Media Type", { details: {} });
  return (document, patch) => withTypeOf(document, applyStrategicPatch(document, patch, schema));
}

/**
 * The real server reads the outcome of a strategic patch straight into the type it knows, so that a kind or
 * apiVersion in it says nothing; those of other patches must be right.
 */
function withTypeOf(document: unknown, patched: unknown): unknown {
  if (!isJsonObject(document) || !isJsonObject(patched)) return patched;
  return { ...patched, kind: document["kind"], apiVersion: document["apiVersion"] };
}

function parsePatch(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function applyTo(
  current: ApiObject | undefined,
  { apply, patch }: { apply: ApplyPatch; patch: unknown },
): unknown {
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
