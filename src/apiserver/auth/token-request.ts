import type { Clock } from "../../base/clock.ts";
import type { Resource } from "../../kube/object.ts";
import { badRequest, invalid, notFound, StatusError, type FieldProblem } from "../errors.ts";
import { fieldAt, toTimestamp, type ApiObject } from "../objects.ts";
import type { ObjectStore } from "../store/store.ts";
import { BOUND_RESOURCES, type BoundObject, type ServiceAccountTokens } from "./service-account-tokens.ts";
import { readObject, textAt, textsAt } from "./stored.ts";
import type { AccountRef } from "./user.ts";

export interface TokenRequestDeps {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly serviceAccounts: ServiceAccountTokens;
}

const TOKEN_REQUEST = { group: "authentication.k8s.io", kind: "TokenRequest" };
const SECONDS_DEFAULT = 3_600;
/** Shorter ones would be renewed all the time; longer ones are as good as passwords. */
const SECONDS_MIN = 600;
const SECONDS_MAX = 2 ** 32;

/** POST serviceaccounts/{name}/token: the body of a 201. Nothing is stored. */
export function requestToken(deps: TokenRequestDeps, account: AccountRef, body: ApiObject): object {
  checkMetadata(account, body);
  const stored = readObject(deps.store, { resource: "serviceaccounts", ...account });
  if (stored === undefined) throw notFound(coreResource("ServiceAccount"), account.name);
  const given = textsAt(body, "spec", "audiences");
  const audiences = given.length === 0 ? deps.serviceAccounts.audiences : given;
  const expirationSeconds = readSeconds(body);
  const reference = fieldAt(body, "spec", "boundObjectRef") ?? null;
  const bound = reference === null ? undefined : resolveBound(deps.store, account, reference);
  const { token, expiresAtMs } = deps.serviceAccounts.issue({
    account: { ...account, uid: stored.metadata.uid ?? "" },
    audiences,
    expirationSeconds,
    bound,
  });
  return {
    kind: TOKEN_REQUEST.kind,
    apiVersion: `${TOKEN_REQUEST.group}/v1`,
    metadata: { ...account, creationTimestamp: toTimestamp(deps.clock.wall()) },
    spec: { audiences, expirationSeconds, boundObjectRef: reference },
    status: { token, expirationTimestamp: toTimestamp(new Date(expiresAtMs)) },
  };
}

function checkMetadata(account: AccountRef, { metadata }: ApiObject): void {
  const problems = (["name", "namespace"] as const)
    .filter((field) => (metadata[field] ?? "") !== "" && metadata[field] !== account[field])
    .map((field) =>
      invalidValue(
        `metadata.${field}`,
        metadata[field],
        `must match the service account ${field} if specified`,
      ),
    );
  if (problems.length > 0) throw invalid(TOKEN_REQUEST, account.name, problems);
}

function readSeconds(body: ApiObject): number {
  const seconds = fieldAt(body, "spec", "expirationSeconds") ?? SECONDS_DEFAULT;
  if (typeof seconds !== "number" || !Number.isSafeInteger(seconds)) {
    throw badRequest("TokenRequest: spec.expirationSeconds must be a whole number");
  }
  const refuse = (detail: string) =>
    invalid(TOKEN_REQUEST, "", [invalidValue("spec.expirationSeconds", seconds, detail)]);
  if (seconds < SECONDS_MIN) throw refuse("may not specify a duration less than 10 minutes");
  if (seconds > SECONDS_MAX) throw refuse("may not specify a duration larger than 2^32 seconds");
  return seconds;
}

function invalidValue(field: string, value: unknown, detail: string): FieldProblem {
  return {
    field,
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(value)}: ${detail}`,
  };
}

const CLAIMS = { Pod: "pod", Secret: "secret", Node: "node" } as const;

function resolveBound(store: ObjectStore, account: AccountRef, reference: unknown): BoundObject {
  const [apiVersion, kind] = [textAt(reference, "apiVersion"), textAt(reference, "kind")];
  const isKnown = (apiVersion === "v1" || apiVersion === "") && Object.hasOwn(CLAIMS, kind);
  if (!isKnown) throw badRequest(`cannot bind token to object of type ${typeText(apiVersion, kind)}`);
  const claim = CLAIMS[kind as keyof typeof CLAIMS];
  const { resource, namespaced } = BOUND_RESOURCES[claim];
  const name = textAt(reference, "name");
  const object = readObject(store, { resource, namespace: namespaced ? account.namespace : "", name });
  if (object === undefined) throw notFound(coreResource(kind), name);
  if (claim === "pod" && (textAt(object, "spec", "serviceAccountName") || "default") !== account.name) {
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(account.name)} to pod running with different serviceaccount name.`,
    );
  }
  checkUid(kind, name, textAt(reference, "uid"), object);
  return {
    kind: claim,
    name,
    uid: object.metadata.uid ?? "",
    node: claim === "pod" ? nodeOf(store, object) : undefined,
  };
}

function checkUid(kind: string, name: string, wanted: string, { metadata }: ApiObject): void {
  if (wanted === "" || wanted === metadata.uid) return;
  const why = `the UID in the bound object reference (${wanted}) does not match the UID in record. The object might have been deleted and then recreated`;
  throw new StatusError(409, `Operation cannot be fulfilled on ${kind} ${JSON.stringify(name)}: ${why}`, {
    details: { name, kind },
  });
}

/** Undefined while the pod is not scheduled, and where its Node was never registered. */
function nodeOf(store: ObjectStore, pod: ApiObject): BoundObject["node"] {
  const name = textAt(pod, "spec", "nodeName");
  const node = name === "" ? undefined : readObject(store, { resource: "nodes", namespace: "", name });
  return node === undefined ? undefined : { name, uid: node.metadata.uid ?? "" };
}

function typeText(apiVersion: string, kind: string): string {
  const [first = "", second] = apiVersion.split("/");
  return `${second === undefined ? `/${first}` : apiVersion}, Kind=${kind}`;
}

function coreResource(kind: string): Resource {
  return { group: "", version: "v1", kind, plural: `${kind.toLowerCase()}s`, namespaced: kind !== "Node" };
}
