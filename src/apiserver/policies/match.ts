import { fromLabelSelectorObject, matchesLabels, type LabelSelectorObject } from "../../kube/selectors.ts";
import { KINDS, storedKind, type Kind } from "../kinds.ts";
import type { ApiObject } from "../objects.ts";
import type { MatchResources, ResourceRule } from "./policy.ts";
import type { PolicyRequest } from "./request.ts";

/** The labels of a namespace; undefined where there is none of that name. */
export type NamespaceLabels = (name: string) => Readonly<Record<string, string>> | undefined;

/**
 * Whether a policy, or a binding, is about this request, and as which kind it wants to see it: an event is asked for
 * under either of its groups. Pure.
 */
export function matchRequest(
  {
    namespaceSelector,
    objectSelector,
    resourceRules = [],
    excludeResourceRules = [],
    matchPolicy,
  }: MatchResources,
  request: PolicyRequest,
  namespaceLabels: NamespaceLabels,
): Kind | undefined {
  if (!matchesNamespace(namespaceSelector, request, namespaceLabels)) return undefined;
  if (!matchesObject(objectSelector, request)) return undefined;
  const isExact = matchPolicy === "Exact";
  if (matchRules(excludeResourceRules, request, isExact) !== undefined) return undefined;
  // A binding may leave them out, and then goes by its policy.
  return resourceRules.length === 0 ? request.resource : matchRules(resourceRules, request, isExact);
}

/** What belongs to no namespace is never let off; a Namespace goes by its own labels. */
function matchesNamespace(
  selector: LabelSelectorObject | undefined,
  { resource, namespace, object, requester }: PolicyRequest,
  namespaceLabels: NamespaceLabels,
): boolean {
  if (namespace === "" || isEverything(selector)) return true;
  const isItself = resource.plural === "namespaces" && resource.group === "";
  const labels =
    isItself && requester.subresource === "" && object !== undefined
      ? (object.metadata.labels ?? {})
      : namespaceLabels(namespace);
  return labels !== undefined && matches(selector, labels);
}

/** As it is or as it was: a label that is taken away does not get an object past its policies. */
function matchesObject(selector: LabelSelectorObject | undefined, { object, old }: PolicyRequest): boolean {
  if (isEverything(selector)) return true;
  return [object, old].some((one?: ApiObject) => one !== undefined && matches(selector, one.metadata.labels));
}

function isEverything(selector: LabelSelectorObject | undefined): selector is undefined {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

function matches(
  selector: LabelSelectorObject | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return selector === undefined || matchesLabels(fromLabelSelectorObject(selector), labels);
}

function matchRules(
  rules: readonly ResourceRule[],
  request: PolicyRequest,
  isExact: boolean,
): Kind | undefined {
  const { resource } = request;
  const kept = storedKind(resource);
  const others = isExact ? [] : KINDS.filter((kind) => kind !== resource && storedKind(kind) === kept);
  return [resource, ...others].find((kind) => rules.some((rule) => matchesRule(rule, kind, request)));
}

function matchesRule(rule: ResourceRule, kind: Kind, { operation, name, requester }: PolicyRequest): boolean {
  const { operations = [], apiGroups = [], apiVersions = [], resources = [], resourceNames = [] } = rule;
  return (
    matchesScope(rule, kind) &&
    anyOf(operations, operation) &&
    anyOf(apiGroups, kind.group) &&
    anyOf(apiVersions, kind.version) &&
    resources.some((pattern) => matchesResource(pattern, kind.plural, requester.subresource)) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  );
}

function matchesScope({ scope = "*" }: ResourceRule, { namespaced }: Kind): boolean {
  return scope === "*" || (scope === "Namespaced") === namespaced;
}

function anyOf(patterns: readonly string[], value: string): boolean {
  return patterns.includes("*") || patterns.includes(value);
}

/** `pods`, `pods/status`, `pods/*`, `*` for every resource without a subresource, and both for everything. */
function matchesResource(pattern: string, plural: string, subresource: string): boolean {
  const [resource = "", wanted = ""] = pattern.split("/", 2);
  return (resource === "*" || resource === plural) && (wanted === "*" || wanted === subresource);
}
