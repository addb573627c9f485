import type { HandlerRequest } from "../../kube/handler.ts";
import type { Authenticator } from "./authenticator.ts";
import type { Authorizer } from "./authorizer.ts";
import { requestAttributes, type AccessAttributes } from "./attributes.ts";
import { accessDenied } from "./forbidden.ts";
import { parseImpersonation } from "./impersonation.ts";
import type { UserInfo } from "./user.ts";

/** A request that may go on: on whose behalf, and what for. */
export interface Admitted {
  readonly user: UserInfo;
  readonly access: AccessAttributes;
}

/**
 * The first three checks of every request, in this order: who it is (401), whom it acts for (403 to whoever
 * may not), and whether that user may do it (403, also for what does not exist). Throws a StatusError.
 */
export function admit(
  { authenticator, authorizer }: { authenticator: Authenticator; authorizer: Authorizer },
  request: Pick<HandlerRequest, "method" | "path" | "headers" | "user">,
): Admitted {
  const sender = authenticator.authenticate(request);
  const user = actingUser(authorizer, sender, request.headers);
  const access = requestAttributes(request.method, request.path);
  checkAccess(authorizer, user, access);
  return { user, access };
}

/** Also for what a request turns out to be later: a PUT or an apply that creates needs `create` as well. */
export function checkAccess(authorizer: Authorizer, user: UserInfo, access: AccessAttributes): void {
  const { allowed, reason } = authorizer.authorize(user, access);
  if (!allowed) throw accessDenied(user, access, reason);
}

function actingUser(authorizer: Authorizer, sender: UserInfo, headers: HandlerRequest["headers"]): UserInfo {
  const impersonation = parseImpersonation(headers);
  for (const need of impersonation?.needs ?? []) checkAccess(authorizer, sender, need);
  return impersonation?.user ?? sender;
}
