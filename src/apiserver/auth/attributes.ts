import { parseFieldSelector, type FieldSelector } from "../../kube/field-selectors.ts";
import { flag } from "../options.ts";

/** What is asked, as roles speak of it. Fields that do not apply are empty, as in the API. */
export type AccessAttributes = ResourceAccess | PathAccess;

export interface ResourceAccess {
  readonly kind: "resource";
  /** Empty for methods that mean nothing here; no rule matches that but `*`. */
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Of lists and watches: a node agent may list pods, but only with the selector of its own. */
  readonly fieldSelector: FieldSelector;
}

export interface PathAccess {
  readonly kind: "path";
  readonly verb: string;
  readonly path: string;
}

/** A resource request with all but the verb and the resource left out. */
export function resourceAccess(
  access: Pick<ResourceAccess, "verb" | "resource"> & Partial<ResourceAccess>,
): ResourceAccess {
  return {
    kind: "resource",
    group: "",
    subresource: "",
    namespace: "",
    name: "",
    fieldSelector: [],
    ...access,
  };
}

/**
 * What a request asks for, whether or not such a resource exists: rights come before existence. `target`
 * has its query. The path is cut at slashes before it is decoded, as `parseRoute` does, so that no escape
 * can mean one object here and another there.
 */
export function requestAttributes(method: string, target: string): AccessAttributes {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? "" : target.slice(mark + 1));
  const resource = resourceOf(path);
  if (resource === undefined) return { kind: "path", verb: method.toLowerCase(), path };
  return withVerb(resource, method, query);
}

type Place = Omit<ResourceAccess, "kind" | "verb" | "fieldSelector"> & { readonly legacyWatch: boolean };

const NAMESPACE_SUBRESOURCES = ["status", "finalize"];

/** The resource a path names; undefined for discovery, health and everything else that is no resource. */
function resourceOf(path: string): Place | undefined {
  const segments = splitPath(path);
  const [prefix, ...afterPrefix] = segments;
  if (prefix !== "api" && prefix !== "apis") return undefined;
  const [group = "", version, ...rest] = prefix === "api" ? ["", ...afterPrefix] : afterPrefix;
  if (version === undefined || rest.length === 0) return undefined;
  const legacyWatch = rest[0] === "watch";
  const parts = legacyWatch ? rest.slice(1) : rest;
  if (parts.length === 0) return undefined;
  const [first, second = "", third] = parts;
  // `namespaces/x` is the Namespace itself, asked for within itself: roles of that namespace may grant it.
  const isInside = first === "namespaces" && third !== undefined && !NAMESPACE_SUBRESOURCES.includes(third);
  const [resource = "", name = "", subresource = ""] = isInside ? parts.slice(2) : parts;
  return { group, resource, subresource, namespace: first === "namespaces" ? second : "", name, legacyWatch };
}

/** Empty for a path that the router does not take apart either: its whole text is then what is asked for. */
function splitPath(path: string): string[] {
  const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(1, -1) : path.slice(1);
  try {
    const segments = trimmed.split("/").map(decodeURIComponent);
    return segments.some((segment) => segment === "" || segment.includes("/")) ? [] : segments;
  } catch {
    return []; // a percent sign that begins no escape
  }
}

const VERBS: Readonly<Record<string, string>> = {
  GET: "get",
  HEAD: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

function withVerb({ legacyWatch, ...place }: Place, method: string, query: URLSearchParams): ResourceAccess {
  const verb = legacyWatch ? "watch" : (VERBS[method] ?? "");
  const access = { kind: "resource" as const, ...place, fieldSelector: [] };
  if (place.name !== "" || (verb !== "get" && verb !== "delete" && verb !== "watch"))
    return { ...access, verb };
  const fieldSelector = selectorOf(query);
  if (verb === "delete") return { ...access, verb: "deletecollection", fieldSelector };
  const isWatch = verb === "watch" || flag(query, "watch") === true;
  // A list of one name is a read of that object, and a role that names the object allows it.
  const name = exactValue(fieldSelector, "metadata.name") ?? "";
  return { ...access, verb: isWatch ? "watch" : "list", name, fieldSelector };
}

/** The value a field must have for an object to be selected; undefined where the selector leaves it open. */
export function exactValue(selector: FieldSelector, path: string): string | undefined {
  return selector.find((requirement) => requirement.path === path && requirement.operator === "=")?.value;
}

/** One that cannot be read, or was given twice, narrows nothing: the request is refused for it later. */
function selectorOf(query: URLSearchParams): FieldSelector {
  const [text, ...more] = query.getAll("fieldSelector");
  if (text === undefined || more.length > 0) return [];
  try {
    return parseFieldSelector(text);
  } catch {
    return [];
  }
}
