import type { ResourceRoute } from "./routes.ts";
import type { Kind } from "./kinds.ts";
import { findSubresource } from "./negotiate/catalogue.ts";
import { flag } from "./options.ts";

/** Verbs as authorisation, metrics and discovery name them. */
export type VerbName =
  "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

/** What a method means on this path; undefined where it is not allowed. */
export function verbFor(method: string, route: ResourceRoute, query: URLSearchParams): VerbName | undefined {
  const { resource, namespace, name, subresource } = route;
  if (name !== undefined) return itemVerb(method, resource, subresource);
  // `watch` on a single object is ignored by the real server; on a collection it makes all the difference.
  if (method === "GET") return flag(query, "watch") === true ? "watch" : "list";
  // Nothing is created in, or deleted from, all namespaces at once.
  if (resource.namespaced && namespace === undefined) return undefined;
  if (method === "POST") return "create";
  return method === "DELETE" && resource.deleteCollection ? "deletecollection" : undefined;
}

function itemVerb(method: string, resource: Kind, subresource: string | undefined): VerbName | undefined {
  const verb = ITEM_VERBS[method];
  if (subresource === undefined) return verb === "create" ? undefined : verb;
  const allowed = findSubresource(resource, subresource)?.verbs ?? [];
  return verb !== undefined && allowed.includes(verb) ? verb : undefined;
}

const ITEM_VERBS: Readonly<Record<string, VerbName>> = {
  GET: "get",
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};
