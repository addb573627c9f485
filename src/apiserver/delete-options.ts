import { isJsonObject } from "../kube/patch/json.ts";
import { badRequest, invalidOptions } from "./errors.ts";
import { readBody } from "./negotiation.ts";
import { flag, parseInteger, parseWriteOptions, unsupported } from "./options.ts";
import type { ResourceRequest } from "./request.ts";

export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: PropagationPolicy | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
}

export type PropagationPolicy = "Foreground" | "Background" | "Orphan";

/** From the body, if there is one, and from the query; kubectl sends a body without kind or apiVersion. */
export function parseDeleteOptions({ query, headers, body }: ResourceRequest): DeleteOptions {
  const given = body.length === 0 ? {} : parseBody(readBody(headers, body));
  const preconditions = given["preconditions"];
  const { uid, resourceVersion } = isJsonObject(preconditions) ? preconditions : {};
  return {
    dryRun: parseWriteOptions(query, "DeleteOptions").dryRun || isDryRun(given["dryRun"]),
    gracePeriodSeconds: parseGrace(given["gracePeriodSeconds"]) ?? parseInteger(query, "gracePeriodSeconds"),
    propagationPolicy: parsePropagation(
      given["propagationPolicy"] ?? query.get("propagationPolicy") ?? undefined,
      given["orphanDependents"] ?? flag(query, "orphanDependents"),
    ),
    uid: textOf(uid, "preconditions.uid"),
    resourceVersion: textOf(resourceVersion, "preconditions.resourceVersion"),
  };
}

function parseBody(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw badRequest(
      `couldn't get version/kind; json parse error: ${error instanceof Error ? error.message : ""}`,
    );
  }
  if (!isJsonObject(value)) throw badRequest("the body of a DELETE must be DeleteOptions, a JSON object");
  return value;
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
  throw invalidOptions(
    "DeleteOptions",
    unsupported("propagationPolicy", textOf(policy, "propagationPolicy") ?? "", supported),
  );
}

function parseGrace(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value))
    throw badRequest("gracePeriodSeconds must be a whole number");
  return value;
}

function isDryRun(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (!Array.isArray(value) || value.some((element) => element !== "All")) {
    throw invalidOptions("DeleteOptions", unsupported("dryRun", JSON.stringify(value), ["All"]));
  }
  return value.length > 0;
}

function textOf(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw badRequest(`${field} must be a string`);
  return value;
}
