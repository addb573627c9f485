import { OPENID_PATHS, type OpenIdDocument } from "./auth/openid.ts";
import { findKind, namespaces, type Kind } from "./kinds.ts";
import { findQuestion, findSubresource, versionsOf, type ServedResource } from "./negotiate/catalogue.ts";

/** What a path means, whatever the method. */
export type Route =
  | { readonly kind: "health"; readonly endpoint: string; readonly check: string | undefined }
  | { readonly kind: "version" }
  | { readonly kind: "metrics" }
  /** `path` is what follows `/openapi/v3/`; empty for the index. */
  | { readonly kind: "openapi"; readonly path: string }
  | { readonly kind: "openapi-v2" }
  | { readonly kind: "root" }
  | { readonly kind: "core-versions" }
  | { readonly kind: "groups" }
  | { readonly kind: "group"; readonly group: string }
  | { readonly kind: "resources"; readonly group: string; readonly version: string }
  | ResourceRoute
  | QuestionRoute
  | OpenIdRoute
  /** A path below a group we serve that names no resource of it: answered as a Status. */
  | { readonly kind: "unknown-resource" }
  /** Not a path of the API at all: answered as plain text. */
  | { readonly kind: "unknown-path" };

export interface ResourceRoute {
  readonly kind: "resource";
  readonly resource: Kind;
  /** Absent for cluster-scoped kinds and for a collection across namespaces. */
  readonly namespace?: string;
  /** Absent for collections. */
  readonly name?: string;
  /** One of those that the catalogue has for this resource. */
  readonly subresource?: string;
}

/** A resource that only takes a question and answers it, such as a review. */
export interface QuestionRoute {
  readonly kind: "question";
  readonly question: ServedResource;
  readonly namespace?: string;
}

/** How others check the tokens that this server issues. */
export interface OpenIdRoute {
  readonly kind: "openid";
  readonly document: OpenIdDocument;
}

const HEALTH = ["healthz", "livez", "readyz"];

/** `path` is without its query. One slash at the end is ignored; doubled ones are no path of ours. */
export function parseRoute(path: string): Route {
  const segments = decodeSegments(path);
  if (segments === undefined) return { kind: "unknown-path" };
  const [first, ...rest] = segments;
  if (first === undefined) return { kind: "root" };
  if (HEALTH.includes(first) && rest.length <= 1) return { kind: "health", endpoint: first, check: rest[0] };
  if (first === "version" && rest.length === 0) return { kind: "version" };
  if (first === "metrics" && rest.length === 0) return { kind: "metrics" };
  if (first === "openapi" && rest[0] === "v2" && rest.length === 1) return { kind: "openapi-v2" };
  if (first === "openapi" && rest[0] === "v3") return { kind: "openapi", path: rest.slice(1).join("/") };
  if (first === ".well-known" || first === "openid") return parseOpenId(segments);
  if (first === "api") return rest.length === 0 ? { kind: "core-versions" } : parseVersion("", rest);
  if (first === "apis") return parseGroup(rest);
  return { kind: "unknown-path" };
}

function parseOpenId(segments: readonly string[]): Route {
  const path = `/${segments.join("/")}`;
  if (path === OPENID_PATHS.configuration) return { kind: "openid", document: "configuration" };
  return path === OPENID_PATHS.keys ? { kind: "openid", document: "keys" } : { kind: "unknown-path" };
}

function parseGroup([group, ...rest]: readonly string[]): Route {
  if (group === undefined) return { kind: "groups" };
  if (group === "" || versionsOf(group).length === 0) return { kind: "unknown-path" };
  return rest.length === 0 ? { kind: "group", group } : parseVersion(group, rest);
}

function parseVersion(group: string, [version = "", ...rest]: readonly string[]): Route {
  if (!versionsOf(group).includes(version)) return { kind: "unknown-resource" };
  if (rest.length === 0) return { kind: "resources", group, version };
  const [first = "", second, ...others] = rest;
  // `namespaces/x` and `namespaces/x/status` are the Namespace itself; `namespaces/x/pods` lies in it.
  const isNamespaceItself =
    first === "namespaces" &&
    (second === undefined || others.length === 0 || isNamespaceSubresource(group, others));
  if (first === "namespaces" && second !== undefined && !isNamespaceItself) {
    const [plural = "", ...more] = others;
    return (
      parseQuestion(group, plural, second, more) ??
      parseResource(findKind(group, version, plural), second, more)
    );
  }
  const more = rest.slice(1);
  return (
    parseQuestion(group, first, undefined, more) ??
    parseResource(findKind(group, version, first), undefined, more)
  );
}

function parseQuestion(
  group: string,
  plural: string,
  namespace: string | undefined,
  more: readonly string[],
): Route | undefined {
  const question = findQuestion(group, plural);
  if (question === undefined) return undefined;
  const fits = more.length === 0 && question.namespaced === (namespace !== undefined);
  if (!fits) return { kind: "unknown-resource" };
  return { kind: "question", question, ...(namespace === undefined ? {} : { namespace }) };
}

function isNamespaceSubresource(group: string, [subresource, ...more]: readonly string[]): boolean {
  return (
    group === namespaces.group &&
    findSubresource(namespaces, subresource ?? "") !== undefined &&
    more.length === 0
  );
}

function parseResource(
  resource: Kind | undefined,
  namespace: string | undefined,
  [name, subresource, ...more]: readonly string[],
): Route {
  if (resource === undefined || more.length > 0) return { kind: "unknown-resource" };
  if (namespace !== undefined && !resource.namespaced) return { kind: "unknown-resource" };
  if (name !== undefined && namespace === undefined && resource.namespaced)
    return { kind: "unknown-resource" };
  // A name cannot hold a slash; one that arrives escaped names nothing.
  if (name?.includes("/") || namespace?.includes("/")) return { kind: "unknown-resource" };
  if (subresource !== undefined && findSubresource(resource, subresource) === undefined) {
    return { kind: "unknown-resource" };
  }
  return {
    kind: "resource",
    resource,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function decodeSegments(path: string): string[] | undefined {
  const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(1, -1) : path.slice(1);
  if (trimmed === "") return path === "/" ? [] : undefined;
  try {
    const segments = trimmed.split("/").map(decodeURIComponent);
    return segments.includes("") ? undefined : segments;
  } catch {
    return undefined; // a percent sign that begins no escape
  }
}
