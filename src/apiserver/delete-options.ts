import { isJsonObject } from "../kube/patch/json.ts";
import { invalidOptions } from "./errors.ts";
import { flag, parseInteger, parseWriteOptions, unsupported } from "./options.ts";
import type { ResourceRequest } from "./request.ts";
import { decodeOptions } from "./schema/body.ts";

export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: PropagationPolicy | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

export type PropagationPolicy = "Foreground" | "Background" | "Orphan";

const DELETE_OPTIONS = { group: "", version: "v1", kind: "DeleteOptions" };

/** From the body, if there is one, and from the query; kubectl sends a body without kind or apiVersion. */
export function parseDeleteOptions({ query, headers, body }: ResourceRequest): DeleteOptions {
  const given = decodeOptions(DELETE_OPTIONS, { headers, body });
  const preconditions = given["preconditions"];
  const { uid, resourceVersion } = isJsonObject(preconditions) ? preconditions : {};
  return {
    dryRun: parseWriteOptions(query, "DeleteOptions").dryRun || isDryRun(given["dryRun"]),
    gracePeriodSeconds: numberOf(given["gracePeriodSeconds"]) ?? parseInteger(query, "gracePeriodSeconds"),
    propagationPolicy: parsePropagation(
      given["propagationPolicy"] ?? query.get("propagationPolicy") ?? undefined,
      given["orphanDependents"] ?? flag(query, "orphanDependents"),
    ),
    uid: textOf(uid),
    resourceVersion: textOf(resourceVersion),
  };
}

function parsePropagation(policy: unknown, orphanDependents: unknown): PropagationPolicy | undefined {
  if (policy === undefined || policy === null || policy === "") {
    if (typeof orphanDependents !== "boolean") return undefined;
    return orphanDependents ? "Orphan" : "Background";
  }
  if (typeof orphanDependents === "boolean") {
    const message = `Invalid value: ${JSON.stringify(policy)}: orphanDependents and deletionPropagation cannot be both set`;
    throw invalidOptions("DeleteOptions", {
      field: "propagationPolicy",
      reason: "FieldValueInvalid",
      message,
    });
  }
  if (policy === "Foreground" || policy === "Background" || policy === "Orphan") return policy;
  const supported = ["Foreground", "Background", "Orphan", "nil"];
  throw invalidOptions("DeleteOptions", unsupported("propagationPolicy", textOf(policy) ?? "", supported));
}

function isDryRun(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (!Array.isArray(value) || value.some((element) => element !== "All")) {
    throw invalidOptions("DeleteOptions", unsupported("dryRun", JSON.stringify(value), ["All"]));
  }
  return value.length > 0;
}

/** Types were checked when the body was decoded. Beyond 2^53 seconds nobody counts them one by one. */
function numberOf(value: unknown): number | undefined {
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
