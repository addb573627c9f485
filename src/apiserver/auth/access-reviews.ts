import { parseFieldSelector, type FieldSelector } from "../../kube/field-selectors.ts";
import { isJsonObject } from "../../kube/patch/json.ts";
import { badRequest, StatusError, type FieldProblem } from "../errors.ts";
import { fieldAt, type ApiObject } from "../objects.ts";
import { resourceAccess, type AccessAttributes } from "./attributes.ts";
import type { ReviewAnswer, ReviewDeps, ReviewQuestion } from "./reviews.ts";
import { listAt, textAt, textsAt } from "./stored.ts";
import type { UserInfo } from "./user.ts";

/** May I? */
export function selfAccessReview(deps: ReviewDeps, { user, body }: ReviewQuestion): ReviewAnswer {
  refuseIf(attributesProblems(body));
  return answer(deps, user, body);
}

/** May somebody? */
export function subjectAccessReview(deps: ReviewDeps, { body }: ReviewQuestion): ReviewAnswer {
  refuseIf([...attributesProblems(body), ...subjectProblems(body)]);
  return answer(deps, subjectOf(body), body);
}

/** May somebody in this namespace? For whoever may ask only there. */
export function localAccessReview(deps: ReviewDeps, { namespace = "", body }: ReviewQuestion): ReviewAnswer {
  const given = body.metadata.namespace ?? "";
  if (given !== "" && given !== namespace) {
    throw badRequest(`spec.resourceAttributes.namespace must match namespace: ${namespace}`);
  }
  refuseIf([...attributesProblems(body), ...subjectProblems(body), ...localProblems(body, namespace)]);
  return answer(deps, subjectOf(body), body);
}

function answer({ authorizer }: ReviewDeps, user: UserInfo, body: ApiObject): ReviewAnswer {
  const { allowed, reason } = authorizer.authorize(user, accessOf(body));
  return { spec: body["spec"], status: { allowed, ...(reason === "" ? {} : { reason }) } };
}

function accessOf(body: ApiObject): AccessAttributes {
  const asked = fieldAt(body, "spec", "resourceAttributes");
  if (asked === undefined) {
    const path = fieldAt(body, "spec", "nonResourceAttributes");
    return { kind: "path", verb: textAt(path, "verb"), path: textAt(path, "path") };
  }
  return resourceAccess({
    verb: textAt(asked, "verb"),
    group: textAt(asked, "group"),
    resource: textAt(asked, "resource"),
    subresource: textAt(asked, "subresource"),
    namespace: textAt(asked, "namespace"),
    name: textAt(asked, "name"),
    fieldSelector: selectorOf(fieldAt(asked, "fieldSelector")),
  });
}

/** What cannot be understood narrows nothing, and a narrower question never gets a wider answer. */
function selectorOf(selector: unknown): FieldSelector {
  try {
    const raw = textAt(selector, "rawSelector");
    if (raw !== "") return parseFieldSelector(raw);
  } catch {
    return [];
  }
  return listAt(selector, "requirements").flatMap((requirement) => {
    const [value, ...more] = textsAt(requirement, "values");
    if (textAt(requirement, "operator") !== "In" || value === undefined || more.length > 0) return [];
    return [{ path: textAt(requirement, "key"), operator: "=" as const, value }];
  });
}

function subjectOf(body: ApiObject): UserInfo {
  const extra = fieldAt(body, "spec", "extra");
  return {
    name: textAt(body, "spec", "user"),
    uid: textAt(body, "spec", "uid"),
    groups: textsAt(body, "spec", "groups"),
    extra: isJsonObject(extra)
      ? Object.fromEntries(Object.keys(extra).map((key) => [key, textsAt(extra, key)]))
      : {},
  };
}

function attributesProblems(body: ApiObject): FieldProblem[] {
  const hasResource = fieldAt(body, "spec", "resourceAttributes") !== undefined;
  const hasPath = fieldAt(body, "spec", "nonResourceAttributes") !== undefined;
  if (hasResource !== hasPath) return [];
  return [
    hasResource
      ? problem("spec.nonResourceAttributes", "cannot be specified in combination with resourceAttributes")
      : problem(
          "spec.resourceAttributes",
          "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
  ];
}

function subjectProblems(body: ApiObject): FieldProblem[] {
  if (textAt(body, "spec", "user") !== "" || textsAt(body, "spec", "groups").length > 0) return [];
  return [problem("spec.user", "at least one of user or group must be specified", "")];
}

function localProblems(body: ApiObject, namespace: string): FieldProblem[] {
  if (fieldAt(body, "spec", "nonResourceAttributes") !== undefined) {
    return [problem("spec.nonResourceAttributes", "disallowed on this kind of request")];
  }
  const asked = textAt(body, "spec", "resourceAttributes", "namespace");
  if (fieldAt(body, "spec", "resourceAttributes") === undefined || asked === namespace) return [];
  return [problem("spec.resourceAttributes.namespace", "must match metadata.namespace", asked)];
}

function problem(field: string, detail: string, value = "null"): FieldProblem {
  return {
    field,
    reason: "FieldValueInvalid",
    message: `Invalid value: ${JSON.stringify(value)}: ${detail}`,
  };
}

/** The original leaves the kind out of these answers, and so do we. */
function refuseIf(problems: readonly FieldProblem[]): void {
  if (problems.length === 0) return;
  const texts = problems.map(({ field, message }) => `${field}: ${message}`);
  const text = texts.length === 1 ? texts.join() : `[${texts.join(", ")}]`;
  throw new StatusError(422, `.authorization.k8s.io "" is invalid: ${text}`, {
    details: {
      group: "authorization.k8s.io",
      causes: problems.map(({ reason, message, field }) => ({ reason, message, field })),
    },
  });
}
