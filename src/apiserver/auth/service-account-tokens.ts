import type { Clock } from "../../base/clock.ts";
import type { ObjectStore } from "../store/store.ts";
import type { JsonObject } from "../../kube/patch/json.ts";
import { fieldAt } from "../objects.ts";
import type { TokenKeys } from "./signing-key.ts";
import { readObject, textAt, textsAt } from "./stored.ts";
import { serviceAccountGroups, serviceAccountUserName, type AccountRef, type UserInfo } from "./user.ts";

/**
 * Tokens of service accounts: what is in them, and when they stop being good. A token dies with its
 * account and with the object it is bound to; a new one of the same name does not revive it. That is
 * looked up in the store every time, so it holds from the very next request on.
 */
export interface ServiceAccountTokens {
  readonly issuer: string;
  /** What a token is for when nobody says: this server. */
  readonly audiences: readonly string[];
  /** The public keys by which others check tokens, as a JSON Web Key Set. */
  readonly jwks: object;
  issue(request: TokenGrant): { readonly token: string; readonly expiresAtMs: number };
  verify(token: string, audiences: readonly string[]): TokenVerdict;
}

export interface TokenGrant {
  readonly account: AccountRef & { readonly uid: string };
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly bound?: BoundObject | undefined;
}

export interface BoundObject {
  readonly kind: keyof typeof BOUND_RESOURCES;
  readonly name: string;
  readonly uid: string;
  /** Of a bound pod: where it runs, for drivers that authorise by node. */
  readonly node?: { readonly name: string; readonly uid: string } | undefined;
}

export type TokenVerdict =
  | { readonly kind: "accepted"; readonly user: UserInfo; readonly audiences: readonly string[] }
  /** Ours, but no longer or not here; `why` is for a TokenReview, never for the bearer. */
  | { readonly kind: "refused"; readonly why: string }
  /** Not made by us at all. */
  | { readonly kind: "foreign" };

export interface TokenOptions {
  readonly issuer?: string;
  readonly audiences?: readonly string[];
}

/** What a token can be bound to, by the name of its claim. */
export const BOUND_RESOURCES = {
  pod: { resource: "pods", namespaced: true },
  secret: { resource: "secrets", namespaced: true },
  node: { resource: "nodes", namespaced: false },
} as const;

/** Wall clocks are set back now and then: a token made just before is good all the same. */
const CLOCK_LEEWAY_MS = 60_000;

export function createServiceAccountTokens(
  deps: { store: ObjectStore; clock: Clock; keys: TokenKeys },
  { issuer = "https://kubernetes.default.svc", audiences = [issuer] }: TokenOptions = {},
): ServiceAccountTokens {
  return {
    issuer,
    audiences,
    jwks: deps.keys.jwks,
    issue(grant) {
      const nowSeconds = Math.floor(deps.clock.wall().getTime() / 1_000);
      const token = deps.keys.signToken(toClaims(issuer, grant, nowSeconds));
      return { token, expiresAtMs: (nowSeconds + grant.expirationSeconds) * 1_000 };
    },
    verify(token, wanted) {
      const claims = deps.keys.verifyToken(token);
      if (claims === undefined || claims["iss"] !== issuer) return { kind: "foreign" };
      const offered = textsAt(claims, "aud");
      const shared = wanted.filter((audience) => offered.includes(audience));
      const nowMs = deps.clock.wall().getTime();
      const why =
        (shared.length === 0 ? audienceProblem(offered, wanted) : undefined) ??
        timeProblem(claims, nowMs) ??
        objectProblem(deps.store, claims, nowMs);
      if (why !== undefined) return { kind: "refused", why };
      return { kind: "accepted", user: toUser(claims), audiences: shared };
    },
  };
}

function toClaims(
  issuer: string,
  { account, audiences, expirationSeconds, bound }: TokenGrant,
  nowSeconds: number,
): object {
  const { namespace, name, uid } = account;
  return {
    aud: audiences,
    exp: nowSeconds + expirationSeconds,
    iat: nowSeconds,
    iss: issuer,
    "kubernetes.io": {
      namespace,
      serviceaccount: { name, uid },
      ...(bound?.node === undefined ? {} : { node: bound.node }),
      ...(bound === undefined ? {} : { [bound.kind]: { name: bound.name, uid: bound.uid } }),
    },
    nbf: nowSeconds,
    sub: serviceAccountUserName(account),
  };
}

function audienceProblem(offered: readonly string[], wanted: readonly string[]): string {
  return `token audiences ${quoted(offered)} is invalid for the target audiences ${quoted(wanted)}`;
}

function quoted(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(" ")}]`;
}

function timeProblem(claims: JsonObject, nowMs: number): string | undefined {
  const { exp, nbf } = claims;
  if (typeof exp !== "number" || typeof nbf !== "number") return "service account token has no times";
  if (nowMs >= exp * 1_000) return "service account token has expired";
  if (nowMs + CLOCK_LEEWAY_MS < nbf * 1_000) return "service account token is not valid yet";
  return undefined;
}

function objectProblem(store: ObjectStore, claims: JsonObject, nowMs: number): string | undefined {
  const { namespace, name, uid } = accountOf(claims);
  if (!isAlive(store, { resource: "serviceaccounts", namespace, name }, uid, nowMs)) {
    return `service account ${namespace}/${name} has been deleted`;
  }
  for (const [claim, { resource, namespaced }] of Object.entries(BOUND_RESOURCES)) {
    const bound = fieldAt(claims, "kubernetes.io", claim);
    // The node of a bound pod is told for information; the pod decides how long the token lives.
    const isInformation = claim === "node" && fieldAt(claims, "kubernetes.io", "pod") !== undefined;
    if (bound === undefined || isInformation) continue;
    const key = { resource, namespace: namespaced ? namespace : "", name: textAt(bound, "name") };
    if (!isAlive(store, key, textAt(bound, "uid"), nowMs))
      return "service account token has been invalidated";
  }
  return undefined;
}

function isAlive(
  store: ObjectStore,
  key: { resource: string; namespace: string; name: string },
  uid: string,
  nowMs: number,
): boolean {
  const object = readObject(store, key);
  if (object === undefined || uid === "" || object.metadata.uid !== uid) return false;
  const { deletionTimestamp } = object.metadata;
  // A pod in its grace period still needs its token; one that outlives it by a minute does not.
  return deletionTimestamp === undefined || nowMs < Date.parse(deletionTimestamp) + CLOCK_LEEWAY_MS;
}

function accountOf(claims: JsonObject): AccountRef & { uid: string } {
  const ours = fieldAt(claims, "kubernetes.io");
  return {
    namespace: textAt(ours, "namespace"),
    name: textAt(ours, "serviceaccount", "name"),
    uid: textAt(ours, "serviceaccount", "uid"),
  };
}

const EXTRA_PREFIX = "authentication.kubernetes.io/";

function toUser(claims: JsonObject): UserInfo {
  const { namespace, name, uid } = accountOf(claims);
  const extra: Record<string, readonly string[]> = {};
  for (const claim of ["pod", "node"]) {
    const object = fieldAt(claims, "kubernetes.io", claim);
    if (object === undefined) continue;
    extra[`${EXTRA_PREFIX}${claim}-name`] = [textAt(object, "name")];
    extra[`${EXTRA_PREFIX}${claim}-uid`] = [textAt(object, "uid")];
  }
  return {
    name: serviceAccountUserName({ namespace, name }),
    uid,
    groups: serviceAccountGroups(namespace),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}
