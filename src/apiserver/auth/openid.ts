import type { HandlerResponse } from "../../kube/handler.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";

/** Where verifiers elsewhere find out how to check tokens of this server without asking it each time. */
export const OPENID_PATHS = {
  configuration: "/.well-known/openid-configuration",
  keys: "/openid/v1/jwks",
} as const;

export type OpenIdDocument = keyof typeof OPENID_PATHS;

/** `url` is how clients reach this server. Who may read these is a matter of roles, as for every path. */
export function answerOpenId(
  { serviceAccounts, url }: { readonly serviceAccounts: ServiceAccountTokens; readonly url: string },
  document: OpenIdDocument,
): HandlerResponse {
  if (document === "keys") return cacheable("application/jwk-set+json", serviceAccounts.jwks);
  return cacheable("application/json", {
    issuer: serviceAccounts.issuer,
    jwks_uri: `${url}${OPENID_PATHS.keys}`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256"],
  });
}

function cacheable(contentType: string, document: object): HandlerResponse {
  return {
    status: 200,
    headers: { "content-type": contentType, "cache-control": "public, max-age=3600" },
    body: JSON.stringify(document),
  };
}
