import { formatJson } from "../kube/json-text.ts";
import type { Clock } from "../base/clock.ts";
import type { HandlerRequest, HandlerResponse } from "../kube/handler.ts";
import { admit, checkAccess, type Admitted } from "./auth/access.ts";
import { checkEscalation } from "./auth/escalation.ts";
import { checkNodeRestriction } from "./auth/node-restriction.ts";
import { answerOpenId } from "./auth/openid.ts";
import { answerReview, findReview, type ReviewDeps } from "./auth/reviews.ts";
import { requestToken } from "./auth/token-request.ts";
import { MASTERS, type AccountRef, type UserInfo } from "./auth/user.ts";
import { methodNotAllowed, unknownResource } from "./errors.ts";
import type { ApiObject } from "./objects.ts";
import { jsonResponse } from "./request.ts";
import type { OpenIdRoute, QuestionRoute } from "./routes.ts";
import { decodeBody } from "./schema/body.ts";
import type { ObjectStore } from "./store/store.ts";

/** Who decides who may do what. A handler without one trusts its caller, as a simulation does. */
export type Guard = ReviewDeps;

/** What the sender of one request may do, beyond what its path already showed. */
export interface Rights {
  readonly user: UserInfo;
  /** Refuses what only the body tells: a node that writes about another, a role above one's own rights. */
  checkWrite(object: ApiObject, previous?: ApiObject): void;
  /** For a PUT or an apply that turns out to create. */
  checkCreate(): void;
  /** Issues a token for a service account; undefined where nobody could check it. */
  readonly requestToken: ((account: AccountRef, body: ApiObject) => object) | undefined;
}

/** Of a caller that needs no guard: a simulation, or the server itself. */
export const TRUSTED: Rights = {
  user: { name: "system:admin", groups: [MASTERS] },
  checkWrite: () => undefined,
  checkCreate: () => undefined,
  requestToken: undefined,
};

/** The first three checks of a request; throws 401 or 403. */
export function rightsOf(
  guard: Guard | undefined,
  deps: { readonly store: ObjectStore; readonly clock: Clock },
  request: HandlerRequest,
): Rights {
  return guard === undefined ? TRUSTED : toRights(guard, deps, admit(guard, request));
}

function toRights(
  { authorizer, serviceAccounts }: Guard,
  { store, clock }: { readonly store: ObjectStore; readonly clock: Clock },
  { user, access }: Admitted,
): Rights {
  const rights: Rights = {
    user,
    requestToken(account, body) {
      rights.checkWrite(body);
      return requestToken({ store, clock, serviceAccounts }, account, body);
    },
    checkWrite(object, previous) {
      if (access.kind !== "resource") return;
      const write = { access, object, previous };
      checkNodeRestriction(store, user, write);
      checkEscalation(authorizer, user, write);
    },
    checkCreate() {
      if (access.kind === "resource") checkAccess(authorizer, user, { ...access, verb: "create" });
    },
  };
  return rights;
}

/** Reviews: asked and answered in one go, and never stored. */
export function answerQuestion(
  guard: Guard | undefined,
  user: UserInfo,
  { question, namespace }: QuestionRoute,
  request: HandlerRequest,
): HandlerResponse {
  if (request.method !== "POST") throw methodNotAllowed();
  const review = findReview(question.group, question.plural);
  if (guard === undefined || review === undefined) throw unknownResource();
  const { object } = decodeBody(review, request);
  return jsonResponse(201, formatJson(answerReview(guard, review, { user, namespace, body: object })));
}

/** How others check tokens of this server, which `address` is the `host:port` of. */
export function answerIssuer(
  guard: Guard | undefined,
  address: string,
  { document }: OpenIdRoute,
  request: HandlerRequest,
): HandlerResponse {
  if (guard === undefined) throw unknownResource();
  if (request.method !== "GET") throw methodNotAllowed();
  return answerOpenId({ serviceAccounts: guard.serviceAccounts, url: `https://${address}` }, document);
}
