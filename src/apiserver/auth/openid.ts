import type { HandlerResponse } from "../../kube/handler.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";
import type { TokenKeys } from "./signing-key.ts";

/** Where verifiers elsewhere find out how to check tokens of this server without asking it each time. */
export const OPENID_PATHS = {
  configuration: "/.well-known/openid-configuration",
  keys: "/openid/v1/jwks",
} as const;

/** The answer to one of these paths; undefined for every other. `url` is how clients reach this server. */
export function answerOpenId(
  deps: { readonly serviceAccounts: ServiceAccountTokens; readonly keys: TokenKeys; readonly url: string },
  path: string,
): HandlerResponse | undefined {
  if (path === OPENID_PATHS.keys) return cacheable("application/jwk-set+json", deps.keys.jwks);
  if (path !== OPENID_PATHS.configuration) return undefined;
  return cacheable("application/json", {
    issuer: deps.serviceAccounts.issuer,
    jwks_uri: `${deps.url}${OPENID_PATHS.keys}`,
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
