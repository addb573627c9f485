import type { ResourceRoute } from "./routes.ts";
import { flag } from "./options.ts";

/** Verbs as authorisation, metrics and discovery name them. */
export type VerbName =
  "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

/** What a method means on this path; undefined where it is not allowed. */
export function verbFor(method: string, route: ResourceRoute, query: URLSearchParams): VerbName | undefined {
  const { resource, namespace, name, subresource } = route;
  if (name !== undefined) {
    if (method === "DELETE") return subresource === undefined ? "delete" : undefined;
    return ITEM_VERBS[method];
  }
  // `watch` on a single object is ignored by the real server; on a collection it makes all the difference.
  if (method === "GET") return flag(query, "watch") === true ? "watch" : "list";
  // Nothing is created in, or deleted from, all namespaces at once.
  if (resource.namespaced && namespace === undefined) return undefined;
  if (method === "POST") return "create";
  return method === "DELETE" && resource.deleteCollection ? "deletecollection" : undefined;
}

const ITEM_VERBS: Readonly<Record<string, VerbName>> = { GET: "get", PUT: "update", PATCH: "patch" };
