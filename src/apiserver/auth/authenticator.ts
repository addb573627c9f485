import type { HandlerRequest } from "../../kube/handler.ts";
import { unauthorized } from "./forbidden.ts";
import type { ServiceAccountTokens, TokenVerdict } from "./service-account-tokens.ts";
import { noStaticTokens, type StaticTokens } from "./static-tokens.ts";
import { ANONYMOUS, asAuthenticated, type UserInfo } from "./user.ts";

export interface Authenticator {
  /** Who sent this request. A credential that proves nothing is 401, never nobody. */
  authenticate(request: Pick<HandlerRequest, "headers" | "user">): UserInfo;
  /** What a token is worth to the given audiences. */
  reviewToken(token: string, audiences: readonly string[]): TokenVerdict;
}

export interface AuthenticatorDeps {
  readonly serviceAccounts: ServiceAccountTokens;
  readonly staticTokens?: StaticTokens;
}

/**
 * A client certificate, checked by the socket before the request gets here, comes first; then the bearer
 * token. As in kube-apiserver, whoever shows a good certificate is not asked about a token as well.
 */
export function createAuthenticator({
  serviceAccounts,
  staticTokens = noStaticTokens,
}: AuthenticatorDeps): Authenticator {
  function reviewToken(token: string, audiences: readonly string[]): TokenVerdict {
    const listed = staticTokens.find(token);
    if (listed === undefined) return accepted(serviceAccounts.verify(token, audiences));
    // A listed token says nothing about audiences: it is meant for this server.
    const shared = audiences.filter((audience) => serviceAccounts.audiences.includes(audience));
    return shared.length === 0
      ? { kind: "foreign" }
      : accepted({ kind: "accepted", user: listed, audiences: shared });
  }

  return {
    reviewToken,
    authenticate({ user, headers }) {
      if (user !== undefined) return asAuthenticated(user);
      const { authorization } = headers;
      if (authorization === undefined) return ANONYMOUS;
      const token = bearerToken(authorization);
      const verdict = token === undefined ? undefined : reviewToken(token, serviceAccounts.audiences);
      if (verdict?.kind !== "accepted") throw unauthorized();
      return verdict.user;
    },
  };
}

function accepted(verdict: TokenVerdict): TokenVerdict {
  return verdict.kind === "accepted" ? { ...verdict, user: asAuthenticated(verdict.user) } : verdict;
}

function bearerToken(header: string): string | undefined {
  const [, token] = /^\s*bearer +([^\s,]+)\s*$/i.exec(header) ?? [];
  return token;
}
