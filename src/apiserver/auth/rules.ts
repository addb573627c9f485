import type { ResourceAccess } from "./attributes.ts";
import { listAt, textsAt } from "./stored.ts";

/** One rule of a role: every list must match, an empty `resourceNames` matches all. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

/** The rules of a Role or ClusterRole; whatever is not a rule is left out, so it grants nothing. */
export function rulesOf(role: unknown): PolicyRule[] {
  return listAt(role, "rules").map((rule) => ({
    verbs: textsAt(rule, "verbs"),
    ...lists(rule, "apiGroups", "resources", "resourceNames", "nonResourceURLs"),
  }));
}

function lists(rule: unknown, ...names: (keyof PolicyRule)[]): Partial<PolicyRule> {
  return Object.fromEntries(
    names.map((name) => [name, textsAt(rule, name)] as const).filter(([, texts]) => texts.length > 0),
  );
}

type ResourceQuestion = Pick<ResourceAccess, "verb" | "group" | "resource" | "subresource" | "name">;

export function allowsResource(rule: PolicyRule, access: ResourceQuestion): boolean {
  return (
    includes(rule.verbs, access.verb) &&
    includes(rule.apiGroups, access.group) &&
    matchesResource(rule.resources ?? [], access) &&
    (isEmpty(rule.resourceNames) || (rule.resourceNames?.includes(access.name) ?? false))
  );
}

export function allowsPath(
  rule: PolicyRule,
  access: { readonly verb: string; readonly path: string },
): boolean {
  return (
    includes(rule.verbs, access.verb) &&
    (rule.nonResourceURLs ?? []).some((url) => matchesUrl(url, access.path))
  );
}

/** `pods`, `pods/status`, `*` for everything, and `*` before a slash for that subresource of all resources. */
function matchesResource(resources: readonly string[], { resource, subresource }: ResourceQuestion): boolean {
  const asked = subresource === "" ? resource : `${resource}/${subresource}`;
  return resources.some(
    (pattern) =>
      pattern === "*" || pattern === asked || (subresource !== "" && pattern === `*/${subresource}`),
  );
}

/** A star counts only at the end. */
export function matchesUrl(pattern: string, path: string): boolean {
  return pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1)));
}

function includes(patterns: readonly string[] | undefined, value: string): boolean {
  return patterns?.some((pattern) => pattern === "*" || pattern === value) ?? false;
}

function isEmpty(texts: readonly string[] | undefined): boolean {
  return texts === undefined || texts.length === 0;
}

/**
 * Whether `held` allow everything that `rule` allows. Several may share the work: the rule is taken apart
 * into single verbs, groups, resources and names, and each part must be covered by one of them.
 */
export function coversRule(held: readonly PolicyRule[], rule: PolicyRule): boolean {
  return partsOf(rule).every((part) => held.some((other) => coversPart(other, part)));
}

interface RulePart {
  readonly verb: string;
  readonly group?: string;
  readonly resource?: string;
  /** Undefined stands for all names. */
  readonly name?: string | undefined;
  readonly url?: string;
}

function partsOf({
  verbs,
  apiGroups = [],
  resources = [],
  resourceNames,
  nonResourceURLs = [],
}: PolicyRule): RulePart[] {
  const names = isEmpty(resourceNames) ? [undefined] : (resourceNames ?? []);
  return verbs.flatMap((verb) => [
    ...nonResourceURLs.map((url) => ({ verb, url })),
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) => names.map((name) => ({ verb, group, resource, name }))),
    ),
  ]);
}

function coversPart(rule: PolicyRule, { verb, group = "", resource = "", name, url }: RulePart): boolean {
  if (!includes(rule.verbs, verb)) return false;
  if (url !== undefined) return (rule.nonResourceURLs ?? []).some((pattern) => matchesUrl(pattern, url));
  const [, subresource = ""] = resource.split("/", 2);
  const coversResource = (rule.resources ?? []).some(
    (pattern) =>
      pattern === "*" || pattern === resource || (subresource !== "" && pattern === `*/${subresource}`),
  );
  const coversName =
    isEmpty(rule.resourceNames) || (name !== undefined && (rule.resourceNames?.includes(name) ?? false));
  return coversResource && coversName && includes(rule.apiGroups, group);
}
