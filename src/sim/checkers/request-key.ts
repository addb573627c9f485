import type { StoreKey } from "../../apiserver/store/store.ts";
import type { TransportRequest } from "../../kube/transport/transport.ts";

/**
 * Which object a write is about: from its path, and of a creation, whose path names only the collection, from its answer.
 * Undefined for what is no object of the store, such as a Binding or a token.
 */
export function parseKey({ method, path }: TransportRequest, body: string): StoreKey | undefined {
  const [bare = ""] = path.split("?", 1);
  const [, root, ...rest] = bare.split("/");
  const [group, parts] = root === "api" ? ["", rest.slice(1)] : [rest[0] ?? "", rest.slice(2)];
  const isNamespaced = parts[0] === "namespaces" && parts.length > 2;
  const namespace = isNamespaced ? (parts[1] ?? "") : "";
  const [plural, named, subresource] = isNamespaced ? parts.slice(2) : parts;
  if (plural === undefined) return undefined;
  if (subresource !== undefined && subresource !== "status") return undefined;
  const name = method === "POST" ? createdName(body) : named;
  if (name === undefined) return undefined;
  return { resource: group === "" ? plural : `${plural}.${group}`, namespace, name };
}

function createdName(body: string): string | undefined {
  const { metadata } = JSON.parse(body) as { readonly metadata?: { readonly name?: string } };
  return metadata?.name;
}
