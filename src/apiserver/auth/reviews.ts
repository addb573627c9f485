import type { ApiObject } from "../objects.ts";
import { badRequest } from "../errors.ts";
import { localAccessReview, selfAccessReview, subjectAccessReview } from "./access-reviews.ts";
import type { Authenticator } from "./authenticator.ts";
import type { Authorizer } from "./authorizer.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";
import { textAt, textsAt } from "./stored.ts";
import { renderUser, type UserInfo } from "./user.ts";

/**
 * Questions to the server about credentials and rights. They are created and answered in one go, never
 * stored: the body of the 201 is the question with its `status` filled in.
 */
export interface ReviewDeps {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly serviceAccounts: ServiceAccountTokens;
}

export interface ReviewQuestion {
  /** Who asks. */
  readonly user: UserInfo;
  /** Of the path; only LocalSubjectAccessReview has one. */
  readonly namespace: string | undefined;
  readonly body: ApiObject;
}

/** `spec` is what the answer repeats of the question. */
export interface ReviewAnswer {
  readonly spec?: unknown;
  readonly status: object;
}

export interface ReviewKind {
  readonly group: "authentication.k8s.io" | "authorization.k8s.io";
  readonly version: "v1";
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly answer: (deps: ReviewDeps, question: ReviewQuestion) => ReviewAnswer;
}

const AUTHENTICATION = { group: "authentication.k8s.io", version: "v1", namespaced: false } as const;
const AUTHORIZATION = { group: "authorization.k8s.io", version: "v1", namespaced: false } as const;

/** All that can be created and only created, in the order of discovery. */
const REVIEWS: readonly ReviewKind[] = [
  { ...AUTHENTICATION, kind: "SelfSubjectReview", plural: "selfsubjectreviews", answer: selfReview },
  { ...AUTHENTICATION, kind: "TokenReview", plural: "tokenreviews", answer: tokenReview },
  {
    ...AUTHORIZATION,
    namespaced: true,
    kind: "LocalSubjectAccessReview",
    plural: "localsubjectaccessreviews",
    answer: localAccessReview,
  },
  {
    ...AUTHORIZATION,
    kind: "SelfSubjectAccessReview",
    plural: "selfsubjectaccessreviews",
    answer: selfAccessReview,
  },
  {
    ...AUTHORIZATION,
    kind: "SelfSubjectRulesReview",
    plural: "selfsubjectrulesreviews",
    answer: rulesReview,
  },
  {
    ...AUTHORIZATION,
    kind: "SubjectAccessReview",
    plural: "subjectaccessreviews",
    answer: subjectAccessReview,
  },
];

export function findReview(group: string, plural: string): ReviewKind | undefined {
  return REVIEWS.find((review) => review.group === group && review.plural === plural);
}

/** The body of the 201, or a StatusError. */
export function answerReview(deps: ReviewDeps, review: ReviewKind, question: ReviewQuestion): object {
  const { spec, status } = review.answer(deps, question);
  const { managedFields: _managedFields, ...metadata } = question.body.metadata;
  return {
    kind: review.kind,
    apiVersion: `${review.group}/${review.version}`,
    metadata: {
      ...metadata,
      ...(question.namespace === undefined ? {} : { namespace: question.namespace }),
      creationTimestamp: null,
    },
    ...(spec === undefined ? {} : { spec }),
    status,
  };
}

function selfReview(_deps: ReviewDeps, { user }: ReviewQuestion): ReviewAnswer {
  return { status: { userInfo: renderUser(user) } };
}

function tokenReview({ authenticator, serviceAccounts }: ReviewDeps, { body }: ReviewQuestion): ReviewAnswer {
  const token = textAt(body, "spec", "token");
  if (token === "") throw badRequest("token is required for TokenReview in authentication");
  const wanted = textsAt(body, "spec", "audiences");
  const verdict = authenticator.reviewToken(token, wanted.length === 0 ? serviceAccounts.audiences : wanted);
  const spec = body["spec"];
  if (verdict.kind === "accepted") {
    const { user, audiences } = verdict;
    return { spec, status: { authenticated: true, user: renderUser(user), audiences } };
  }
  const invalid = "invalid bearer token";
  const error = verdict.kind === "foreign" ? invalid : `[${invalid}, ${verdict.why}]`;
  return { spec, status: { user: {}, error } };
}

function rulesReview({ authorizer }: ReviewDeps, { user, body }: ReviewQuestion): ReviewAnswer {
  const namespace = textAt(body, "spec", "namespace");
  if (namespace === "") throw badRequest("no namespace on request");
  return { spec: {}, status: authorizer.rulesFor(user, namespace) };
}
