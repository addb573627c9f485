import { isKubeError } from "../../kube/errors.ts";
import { applyJsonPatch } from "../../kube/patch/json-patch.ts";
import { applyMergePatch } from "../../kube/patch/merge-patch.ts";
import { badRequest, StatusError } from "../errors.ts";
import type { Kind } from "../kinds.ts";
import { bodyText, mediaType } from "../negotiation.ts";
import { checkObject, type ApiObject } from "../objects.ts";
import { parseWriteOptions } from "../options.ts";
import { replaceObject } from "../replace.ts";
import { jsonResponse, keyFor, type Verb } from "../request.ts";
import { checkNamespace } from "./create.ts";
import { checkName } from "./update.ts";

/** PATCH: read, change, then the way of a PUT; repeated if somebody else writes in between. */
export const patch: Verb = async (deps, { kind, namespace, name, subresource, query, headers, body }) => {
  const { dryRun } = parseWriteOptions(query, "PatchOptions");
  const apply = choosePatch(headers["content-type"]);
  const parsed = parsePatch(bodyText(body));
  const desire = (current: ApiObject) => patched(kind, current, { apply, patch: parsed, name, namespace });
  const key = keyFor(kind, namespace, name);
  return jsonResponse(200, await replaceObject(deps, { kind, key, subresource, dryRun, desire }));
};

type ApplyPatch = (document: unknown, patch: unknown) => unknown;

const POSTPONED: Readonly<Record<string, string>> = {
  "application/strategic-merge-patch+json": "strategic merge patches are",
  "application/apply-patch+yaml": "server-side apply is",
};

function choosePatch(header: string | undefined): ApplyPatch {
  const type = mediaType(header);
  if (type === "application/json-patch+json") return applyJsonPatch;
  if (type === "application/merge-patch+json") return applyMergePatch;
  const postponed = POSTPONED[type];
  if (postponed === undefined) throw new StatusError(415, "415: Unsupported Media Type", { details: {} });
  throw new StatusError(
    415,
    `${postponed} not supported by this version of the server; use application/merge-patch+json ` +
      "(kubectl patch --type=merge) or application/json-patch+json",
    { details: {} },
  );
}

function parsePatch(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`error decoding patch: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function patched(
  kind: Kind,
  current: ApiObject,
  {
    apply,
    patch,
    name,
    namespace,
  }: { apply: ApplyPatch; patch: unknown; name: string; namespace: string | undefined },
): ApiObject {
  const object = checkObject(kind, applyTo(current, { apply, patch }));
  checkName(object, name);
  checkNamespace(object, namespace);
  // A patch that takes the name away means nothing by it.
  return { ...object, metadata: { ...object.metadata, name } };
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
